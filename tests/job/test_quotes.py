from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.quotes import align_quote


@pytest.mark.parametrize(
    ("quote", "text", "span"),
    [
        ("disk is full", "the disk is full now", "disk is full"),
        ("Disk  is\nFull", "the disk is full now", "disk is full"),
        ("支付失败，已扣款", "用户：支付失败,已扣款。", "支付失败,已扣款"),
        ("the disk is completely full", "error: the disk is complet", "the disk is complet"),
        ("nothing of this", "the disk is full", None),
        ("", "text", ""),
    ],
)
def test_a_quote_becomes_the_exact_span(quote: str, text: str, span: str | None) -> None:
    assert align_quote(quote, text) == span


@given(st.text(max_size=40), st.text(max_size=200))
def test_what_comes_out_stands_in_the_text(quote: str, text: str) -> None:
    aligned = align_quote(quote, text)
    assert aligned is None or aligned in text
