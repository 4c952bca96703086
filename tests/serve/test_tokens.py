"""Counting tokens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from serve.ask.tokens import count, count_all

_TEXTS = st.text(
    alphabet=st.one_of(st.sampled_from("0123456789 .:-ae中，'"), st.characters(codec="utf-8")),
    max_size=60,
)


def test_every_group_of_up_to_three_digits_is_one_token() -> None:
    groups = [f"{n:0{width}d}" for width in (1, 2, 3) for n in range(10**width)]
    assert set(count_all(groups)) == {1}


@given(_TEXTS)
def test_a_remembered_count_is_that_of_the_text(text: str) -> None:
    assert count(text) == count_all([text])[0]
    assert count(text * 40) == count_all([text * 40])[0]
