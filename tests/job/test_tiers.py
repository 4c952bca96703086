"""Which models a run asks, and which of them answers what."""

from __future__ import annotations

from typing import Any

import pytest

from job.analyse.tiers import first_tier, next_tier, tier_names
from serve.ask.settings import Tiers

EASY, ORDINARY, HARD = "the disk is full", "explain the failure", "prove that it cannot fail"


@pytest.mark.parametrize(
    ("named", "models", "places"),
    [
        ({"fast": "s", "powerful": "l"}, ("s", "l"), (0, 1, 1)),
        ({"fast": "s", "balanced": "m", "powerful": "l"}, ("s", "m", "l"), (0, 1, 2)),
        ({"fast": "s", "balanced": "s", "powerful": "l"}, ("s", "s", "l"), (0, 1, 2)),
        ({"fast": "s", "balanced": "l", "powerful": "l"}, ("s", "l"), (0, 1, 1)),
        ({"fast": "l", "balanced": "l", "powerful": "l"}, ("l",), (0, 0, 0)),
    ],
)
def test_each_text_begins_with_the_model_that_is_named_for_it(
    named: dict[str, Any], models: tuple[str, ...], places: tuple[int, ...]
) -> None:
    asked = Tiers(**named).models
    assert asked == models
    assert tuple(first_tier(text, asked)[0] for text in (EASY, ORDINARY, HARD)) == places


def test_what_one_model_could_not_answer_is_never_handed_to_itself() -> None:
    assert next_tier(("s", "m", "l"), 0) == 1
    assert next_tier(("s", "s", "l"), 0) == 2
    assert next_tier(("s", "l"), 1) is None


def test_the_places_have_the_names_of_the_tiers() -> None:
    assert tier_names(("s", "l")) == ("fast", "powerful")
    assert tier_names(("s", "m", "l")) == ("fast", "balanced", "powerful")
