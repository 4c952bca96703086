"""What the name of a field says about its value."""

from __future__ import annotations

import re

import pytest

from job.mask.masking import ALIAS
from tests.job.test_mask import MASKER


def test_a_credential_by_the_name_of_its_field_is_one_as_a_whole() -> None:
    masked, counts = MASKER.mask_named("clientSecret", "three little words")
    assert ALIAS.fullmatch(masked)
    assert counts == {"secret": 1}
    assert MASKER.mask_named("clientSecret", masked) == (masked, {})
    assert MASKER.mask_named("max_tokens", "123456789") == ("123456789", {})


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("pin", "4821", "secret"),
        ("password", "123", "secret"),
        ("verifyCode", "204817", "secret"),
        ("验证码", "204817", "secret"),
        ("Authorization", "Token 5f2d8c1b9a7e4036", "secret"),
        ("手机号", "62781934", "phone"),
        ("wechat", "mei_shop", "phone"),
        ("passport_no", "G55120987", "id_card"),
        ("车牌号", "苏E·1234警", "id_card"),
        ("bankAccount", "3301040160009712", "card"),
    ],
)
def test_the_name_of_a_field_says_what_is_private(name: str, value: str, kind: str) -> None:
    masked, counts = MASKER.mask_named(name, value)
    assert re.fullmatch(rf"<{kind}-[0-9a-f]{{10}}>", masked)
    assert counts == {kind: 1}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password", "null"),
        ("password", "****"),
        ("password_required", "yes"),
        ("phone", "unknown"),
        ("phone_model", "iPhone14Pro"),
        ("mobile", "true"),
        ("template", "order 12345678"),
        ("card_type", "gold-2026"),
        ("pin", "ok"),
        ("tokens", "5123"),
        ("status_code", "500123"),
        ("trace_id", "4bf92f3577b34da6a3ce929d0e0e4736"),
    ],
)
def test_other_fields_and_empty_ones_are_left(name: str, value: str) -> None:
    assert MASKER.mask_named(name, value) == (value, {})


def test_a_value_has_one_alias_in_a_field_and_in_a_sentence() -> None:
    named = MASKER.mask_named("phone", "+8613812345678")[0]
    assert MASKER.mask("call 13812345678 now")[0] == f"call {named} now"
    host = MASKER.mask("ip-10-1-2-3.ec2.internal")[0]
    assert host.removeprefix("ip-").removesuffix(".ec2.internal") == MASKER.mask("10.1.2.3")[0]
