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


@pytest.mark.parametrize(
    ("quote", "text", "span"),
    [
        ("lease 7 was lost", "the lease 89 was lost", "lease 89 was lost"),
        (
            "Failed password for root from 203.0.113.9",
            "sshd: Failed password for mary.w from 198.51.100.77 port 22",
            "Failed password for mary.w from 198.51.100.77",
        ),
        (
            "/var/log/a.log: No space left",
            "cannot write " + "x " * 300 + "/srv/deep/down/b.log: No space left on it",
            "/srv/deep/down/b.log: No space left",
        ),
        ("用户 zhangsan 登录失败", "今天用户 lisi02 登录失败了", "用户 lisi02 登录失败"),
        ("web-1 is lost", "nothing like it", None),
    ],
)
def test_a_quote_of_a_record_that_says_the_same_finds_its_place(
    quote: str, text: str, span: str | None
) -> None:
    assert align_quote(quote, text, numbers_vary=True) == span


_PIECES = st.lists(
    st.sampled_from(
        ["for user anna ", "/var/a.log ", "12 ms ", "lost ", "用户 ", "from ", "<", ":"]
    ),
    max_size=12,
).map("".join)


@given(_PIECES, _PIECES)
def test_what_stands_for_another_quote_stands_in_the_text(quote: str, text: str) -> None:
    aligned = align_quote(quote, text, numbers_vary=True)
    assert aligned is None or aligned in text
