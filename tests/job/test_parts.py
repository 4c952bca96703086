from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from job.analyse.parts import MAX_PARTS, merge_answers, split_text
from job.records import Answer, Issue
from serve.ask import tokens


@given(st.text(alphabet="ab 。\n好坏", min_size=1, max_size=3000), st.integers(50, 400))
def test_parts_fit_and_cover_the_text(text: str, size: int) -> None:
    parts = split_text(text, size)
    if parts is None:
        return
    assert len(parts) <= MAX_PARTS
    assert all(tokens.count(part) <= size for part in parts)
    position = 0
    for part in parts:
        start = text.find(part, max(0, position - len(part)))
        assert 0 <= start <= position
        position = start + len(part)
    assert position == len(text)


def test_above_32_parts_there_is_no_split() -> None:
    assert split_text("word " * 4000, 50) is None


def test_a_character_that_is_too_much_by_itself_ends_the_splitting() -> None:
    assert split_text("𠜎" * 8, 2) is None


def test_the_gravest_part_decides_and_each_issue_stands_once() -> None:
    low = Issue("a", "b", "stated", "c", "low", None)
    high = Issue("d", "e", "stated", "f", "high", None)
    merged = merge_answers(
        [Answer("normal"), Answer("problem", (low,)), Answer("problem", (high, low))]
    )
    assert merged.outcome == "problem"
    assert merged.issues == (high, low)
