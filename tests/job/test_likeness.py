"""Which group a text belongs to by its words, and which belong to none."""

from __future__ import annotations

import random

import pytest

from job.themes.likeness import Profiles

BY_CAUSE = [
    [
        ("charging the card failed", "the bank did not answer"),
        ("the card payment failed", "no answer from the bank"),
        ("paying by card fails", "the bank does not answer"),
    ],
    [
        ("charging the card failed", "the card has expired"),
        ("card payment was refused", "an expired card"),
        ("the card payment failed", "the card is expired"),
    ],
    [
        ("the parcel is late", "the depot is short of drivers"),
        ("my parcel has not come", "too few drivers at the depot"),
        ("late parcel", "there are not enough drivers"),
    ],
    [
        ("扫地机器人频繁断网", "家里无线信号覆盖不到"),
        ("扫地机器人连不上网", "无线信号覆盖不到那个房间"),
        ("扫地机器人经常掉线", "家里的无线信号太弱"),
    ],
]
TEXTS = [text for texts in BY_CAUSE for text in texts]
GROUPS = [group for group, texts in enumerate(BY_CAUSE) for _ in texts]


def sides(texts: list[tuple[str, str]]) -> list[list[str]]:
    return [[event for event, _ in texts], [cause for _, cause in texts]]


PROFILES = Profiles.of(sides(TEXTS), GROUPS)


@pytest.mark.parametrize(
    ("event", "cause", "group"),
    [
        ("charging my card failed", "the bank never answered", 0),
        ("charging my card failed", "it had expired", 1),
        ("where is my parcel", "the depot lacks drivers", 2),
        ("机器人断网", "房间里无线信号弱", 3),
        ("an elephant sat on a piano", "nobody closed a gate", None),
        ("打印机卡纸", "滚轮磨损", None),
        ("42 %", "---", None),
    ],
)
def test_words_tell_the_group(event: str, cause: str, group: int | None) -> None:
    assert PROFILES.nearest(sides([(event, cause)])) == [group]


def test_each_of_many_finds_its_own() -> None:
    assert PROFILES.nearest(sides(TEXTS * 100)) == GROUPS * 100


def test_where_words_do_not_tell_the_groups_apart_nothing_is_assigned() -> None:
    rng = random.Random(4)
    words = ["order", "parcel", "card", "bank", "late", "lost", "failed", "again", "today", "now"]
    texts = [(" ".join(rng.sample(words, 5)), " ".join(rng.sample(words, 5))) for _ in range(200)]
    profiles = Profiles.of(sides(texts), [rng.randrange(8) for _ in texts])
    fresh = [(" ".join(rng.sample(words, 5)), " ".join(rng.sample(words, 5))) for _ in range(200)]
    assert sum(group is not None for group in profiles.nearest(sides(fresh))) <= 10


def test_groups_of_one_take_nothing_in() -> None:
    alone = Profiles.of(sides(TEXTS), list(range(len(TEXTS))))
    assert alone.nearest(sides([("late", "the depot is short of drivers")])) == [None]


def test_of_no_texts_none() -> None:
    assert PROFILES.nearest([[], []]) == []
