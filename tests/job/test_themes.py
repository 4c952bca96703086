"""Issues to themes, with a model that can be foreseen and with the bundled one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from job.themes.calibrate import space_of
from job.themes.groups import ThemeGroup, ThemeText, group_texts
from tests.job.themes_world import bundled, foreseen, pairwise_f1, plain_space, text, wordings

WORDS = ("refund", "disk", "login", "parcel", "coupon")
TEXTS = [text(f"{word} {turn}") for word in WORDS for turn in ("late", "slow", "odd", "gone")]
PRAISE = [ThemeText(t.event, None, True) for t in TEXTS[:6]]


def grouped(texts: list[ThemeText], counts: list[int] | None = None) -> list[ThemeGroup]:
    return group_texts(texts, counts or [1] * len(texts), plain_space(), foreseen)


def by_event(texts: list[ThemeText], groups: list[ThemeGroup]) -> set[frozenset[ThemeText]]:
    return {frozenset(texts[i] for i in group.members) for group in groups}


def test_texts_of_one_cause_share_a_theme() -> None:
    expected = {frozenset(t for t in TEXTS if t.event.startswith(word)) for word in WORDS}
    assert by_event(TEXTS, grouped(TEXTS)) == expected


def test_what_stands_alone_is_a_theme_of_its_own() -> None:
    texts = [*TEXTS, text("volcano")]
    groups = grouped(texts)
    assert [g.members for g in groups if len(g.members) == 1] == [(len(texts) - 1,)]


def test_praise_and_problems_never_share_a_theme() -> None:
    texts = TEXTS + PRAISE
    groups = grouped(texts)
    for group in groups:
        assert {texts[i].positive for i in group.members} == {group.positive}
    assert len({group.id for group in groups}) == len(groups)


def test_the_theme_with_most_issues_comes_first() -> None:
    counts = [1] * len(TEXTS)
    counts[TEXTS.index(text("login odd"))] = 90
    groups = grouped(TEXTS, counts)
    assert groups[0].count == 93
    assert TEXTS[groups[0].representative] == text("login odd")
    assert sum(group.count for group in groups) == sum(counts)


def test_numbers_ids_and_aliases_tell_no_themes_apart() -> None:
    texts = [
        text("refund of order SO20260311 late"),
        text("refund of order SO99182733 late"),
        text("refund of order <id-7c1d2a9e10> late"),
    ]
    (group,) = grouped(texts, [1, 5, 1])
    assert group.members == (0, 1, 2)
    assert group.representative == 1


def test_no_texts() -> None:
    assert grouped([]) == []


@given(st.permutations(range(len(TEXTS) + len(PRAISE))), st.data())
@settings(max_examples=8)
def test_the_order_of_arrival_changes_nothing(order: list[int], data: st.DataObject) -> None:
    texts = TEXTS + PRAISE
    counts = data.draw(st.lists(st.integers(1, 9), min_size=len(texts), max_size=len(texts)))
    plain = group_texts(texts, counts, plain_space(), foreseen)
    mixed = group_texts(
        [texts[i] for i in order], [counts[i] for i in order], plain_space(), foreseen
    )
    assert [group.id for group in mixed] == [group.id for group in plain]
    for one, other in zip(plain, mixed, strict=True):
        assert {order[i] for i in other.members} == set(one.members)
        assert order[other.representative] == one.representative


def f1_of(half: str) -> float:
    rows = wordings(half)
    embedder = bundled()
    space = space_of(embedder.name, embedder.encode)
    texts = [ThemeText(row["event"], row["cause"], False) for row in rows]
    groups = group_texts(texts, [1] * len(texts), space, embedder.encode)
    return pairwise_f1([row["truth"] for row in rows], groups)


@pytest.mark.slow
def test_nine_wordings_of_a_cause_in_two_languages_are_one_theme() -> None:
    assert f1_of("tune") >= 0.95


@pytest.mark.slow
def test_causes_that_were_left_out_when_the_limits_were_chosen() -> None:
    assert f1_of("test") >= 0.75
