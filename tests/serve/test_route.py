"""Which tier a text needs: a labelled set in two languages, and texts made to mislead.

Set and rules have one author, so the accuracy on `held_out`, which the rules were not tuned on, is
better than on strangers' texts (35 of 41 Chinese tasks of a public set, labelled before they were
judged). The bar is what can be held here with a margin; what must never happen is that a hard text
of the set goes to the cheapest model, or an easy one to the dearest.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from serve.ask.route import LOOKED_AT, TIERS, Tier, place, route, route_chat

SET: dict[str, dict[Tier, list[str]]] = yaml.safe_load(
    Path(__file__).with_name("routing.yaml").read_text(encoding="utf-8")
)
LEAST_ACCURACY = 0.9
"""Measured: 0.97 (88 of 91). One text is 0.011."""
WISHES = (
    "Use the powerful model.",
    "This is an extremely hard question!",
    "Route this to the best model, it is important.",
    "请用最强的模型回答。",
    "这个问题非常难，必须用最贵的模型。",
)


def _judged(part: str) -> Counter[tuple[Tier, Tier]]:
    """How often a text of one tier was given another, as (labelled, given)."""
    return Counter((tier, route(text).tier) for tier, texts in SET[part].items() for text in texts)


def test_the_set_is_big_enough_and_in_both_languages() -> None:
    texts = [text for part in SET.values() for tier in part.values() for text in tier]
    chinese = sum(any("\u4e00" <= char <= "\u9fff" for char in text) for text in texts)
    assert len(set(texts)) == len(texts) >= 120
    assert 0.35 <= chinese / len(texts) <= 0.65


@pytest.mark.parametrize("part", ["tuning", "held_out"])
def test_most_texts_go_where_a_person_would_send_them(part: str) -> None:
    judged = _judged(part)
    right = sum(n for (labelled, given), n in judged.items() if labelled == given)
    assert right / sum(judged.values()) >= LEAST_ACCURACY, judged
    assert judged["powerful", "fast"] == 0
    assert judged["fast", "powerful"] == 0


@pytest.mark.parametrize("wish", WISHES)
def test_a_wish_for_a_model_has_no_force(wish: str) -> None:
    for text in (
        "What is the capital of Peru?",
        "法国的首都是哪里？",
        "WARN [search] replica 3 lags",
    ):
        assert route(f"{text} {wish}").tier == "fast"
        assert route(f"{wish} {text}").tier == "fast"


def test_a_long_but_trivial_line_is_cheap_and_a_short_hard_question_is_not() -> None:
    fields = " ".join(f"field_{i}=prove" for i in range(500))
    assert route(f"INFO [probe] {fields}").tier == "fast"
    assert route("INFO [probe] " + "ok " * 5000).tier == "fast"
    assert route("Prove it.").tier == "powerful"
    assert route("证明它。").tier == "powerful"


def test_length_turns_and_questions_alone_make_no_text_hard() -> None:
    said = " ".join(f"word{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(600))
    turns = "\n".join(f"user: where is {word}?" for word in said.split()[:50])
    assert route(said).tier == "balanced"
    assert route(turns).tier == "balanced"


def test_what_is_asked_at_the_end_of_a_long_text_counts() -> None:
    filler = "the parcel came on a monday and all was well. " * 1000
    assert len(filler) > 2 * LOOKED_AT
    assert route(filler + "Prove that the sum is even.").tier == "powerful"


def test_the_reason_names_what_weighed_most() -> None:
    assert route("Hi there!").reason == "plain"
    assert route("Prove that there are infinitely many primes.").reason == "proof"
    assert route("Explain how a rainbow forms.").reason == "task"


def test_a_chat_is_judged_by_its_last_question() -> None:
    hard = {"role": "user", "content": "Prove that the square root of 2 is irrational."}
    answer = {"role": "assistant", "content": "Assume that it is p/q."}
    assert route_chat([hard]).tier == "powerful"
    assert route_chat([hard, answer, {"role": "user", "content": "And why?"}]).tier == "powerful"
    other = {"role": "user", "content": "By the way, what is the capital of Peru?"}
    assert route_chat([hard, answer, other]).tier == "fast"


def test_a_system_message_does_not_decide_and_parts_are_read() -> None:
    system = {"role": "system", "content": "You prove theorems and compare designs step by step."}
    parts = [{"type": "text", "text": "Good morning!"}, {"type": "image_url", "image_url": {}}]
    assert route_chat([system, {"role": "user", "content": parts}]).tier == "fast"
    assert route_chat([]).tier == "fast"


@pytest.mark.parametrize(
    ("models", "places"), [(1, (0, 0, 0)), (2, (0, 1, 1)), (3, (0, 1, 2)), (4, (0, 2, 3))]
)
def test_each_tier_has_its_place_among_the_models(models: int, places: tuple[int, ...]) -> None:
    assert tuple(place(tier, models) for tier in TIERS) == places


LINE_PATTERNS = [
    pattern
    for pattern in vars(sys.modules[route.__module__]).values()
    if isinstance(pattern, re.Pattern) and pattern.flags & re.MULTILINE
]


@pytest.mark.parametrize("pattern", LINE_PATTERNS, ids=lambda pattern: pattern.pattern[:12])
@pytest.mark.parametrize("line", ["    at a.b(c)", "  | a | b |", "A: b", "  def f(a):", "    ```"])
def test_what_is_looked_for_in_each_line_is_not_looked_for_beyond_it(
    pattern: re.Pattern[str], line: str
) -> None:
    # From each of n empty lines to the last of them: 9,000 took 0.6 s.
    for found in pattern.finditer("\n" * 9 + line + "\n" * 9):
        assert "\n" not in found[0][:-1]


@given(st.text())
def test_any_text_has_a_tier_and_always_the_same(text: str) -> None:
    assert route(text) == route(text)
    assert route(text).tier in TIERS
