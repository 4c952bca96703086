"""Ids that stay the same from day to day."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.themes.groups import ThemeGroup, ThemeText, group_texts
from job.themes.ids import continue_ids, theme_id
from tests.job.themes_world import foreseen, plain_space, text

WORDS = ("refund", "disk", "login", "parcel", "coupon")


def day(words: Sequence[str], turns: Sequence[str]) -> tuple[list[ThemeText], list[ThemeGroup]]:
    texts = [text(f"{word} {turn}") for word in words for turn in turns]
    return texts, group_texts(texts, [1] * len(texts), plain_space(), foreseen)


def ids_by_word(texts: list[ThemeText], groups: list[ThemeGroup]) -> dict[str, str]:
    return {texts[group.representative].event.split()[0]: group.id for group in groups}


def test_a_theme_keeps_its_id_when_its_wordings_change() -> None:
    before = ids_by_word(*day(WORDS, ("late", "slow", "odd")))
    texts, groups = day(WORDS, ("gone", "bad", "stuck"))
    ids = continue_ids(groups, day(WORDS, ("late", "slow", "odd"))[1])
    after = {word: ids[own] for word, own in ids_by_word(texts, groups).items()}
    assert after == before


def test_a_new_theme_has_its_own_id_and_a_gone_one_none() -> None:
    _, earlier = day(WORDS[:3], ("late", "slow", "odd"))
    texts, groups = day(WORDS[1:4], ("late", "slow", "odd"))
    ids = continue_ids(groups, earlier)
    new = ids_by_word(texts, groups)["parcel"]
    assert ids[new] == new
    assert new not in {theme.id for theme in earlier}


def test_praise_never_continues_a_problem() -> None:
    _, earlier = day(("refund",), ("late", "slow"))
    texts = [ThemeText(f"refund {turn}", None, True) for turn in ("late", "slow")]
    groups = group_texts(texts, [1, 1], plain_space(), foreseen)
    assert continue_ids(groups, earlier) == {group.id: group.id for group in groups}


def test_nothing_earlier() -> None:
    _, groups = day(WORDS, ("late", "slow"))
    assert continue_ids(groups, []) == {group.id: group.id for group in groups}
    assert continue_ids([], groups) == {}


@given(st.sets(st.sampled_from(WORDS), min_size=1), st.sets(st.sampled_from(WORDS), min_size=1))
def test_ids_are_unique_and_each_earlier_theme_continues_at_most_once(
    first: set[str], second: set[str]
) -> None:
    _, earlier = day(sorted(first), ("late", "slow"))
    _, groups = day(sorted(second), ("odd", "gone", "late"))
    ids = continue_ids(groups, earlier)
    assert len(set(ids.values())) == len(groups)


def test_an_id_that_another_theme_inherits_is_given_up() -> None:
    _, (theme,) = day(("refund",), ("late", "slow"))
    stranger = ThemeGroup(
        theme.id, (0,), 0, 1, False, day(("disk",), ("full", "old"))[1][0].centroid, theme.cohesion
    )
    others = day(("disk",), ("full", "old"))[1]
    ids = continue_ids([theme, *others], [stranger])
    assert ids[others[0].id] == theme.id
    assert ids[theme.id] != theme.id
    assert len(set(ids.values())) == 2


@pytest.mark.parametrize("content", ["", "a", "退款", "\ud800"])
def test_the_form_of_an_id(content: str) -> None:
    assert len(theme_id(content)) == 12
    assert theme_id(content).startswith("t-")
    assert theme_id(content) == theme_id(content)
