"""Which texts are taken to say the same by their words, and which are not."""

from __future__ import annotations

import pytest

from job.likeness import Lexicon, nearest

SAID = [
    ("charging the card failed", "the bank did not answer"),
    ("the parcel is late", "the depot is short of drivers"),
    ("扫地机器人频繁断网", "家里无线信号覆盖不到"),
    ("写入文件失败", "磁盘已满"),
]
LEXICONS = [Lexicon.of([event for event, _ in SAID]), Lexicon.of([cause for _, cause in SAID])]


def row_of(event: str, cause: str) -> int | None:
    (row,) = nearest(LEXICONS, [[event], [cause]])
    return row


@pytest.mark.parametrize(
    ("event", "cause", "row"),
    [
        ("the card charging failed again", "the bank has not answered", 0),
        ("the parcel is too late", "the depot is short of good drivers", 1),
        ("扫地机器人连不上网，频繁断网", "无线信号覆盖不到那个房间", 2),
        ("charging the card failed", "the card has expired", None),
        ("写入文件失败", "没有写权限", None),
        ("an elephant sat on the piano", "nobody closed the gate", None),
        ("42 %", "---", None),
    ],
)
def test_what_says_the_same_and_what_does_not(event: str, cause: str, row: int | None) -> None:
    assert row_of(event, cause) == row


def test_each_of_many_finds_its_own() -> None:
    events, causes = ([said[side] for said in SAID * 400] for side in (0, 1))
    assert nearest(LEXICONS, [events, causes]) == [0, 1, 2, 3] * 400


def test_of_no_texts_none() -> None:
    assert nearest(LEXICONS, [[], []]) == []
