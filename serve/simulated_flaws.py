"""How the answers of a model get worse, in calls that did not fail: rows that get lost in long
prompts, attention that fades towards the end of a pack, a model too weak for some records.

Invariant: an answer with flaws is well formed, so nothing in the protocol betrays them; which rows
they strike depends on the settings and the chances given alone. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from serve.simulated_limits import interpolated
from serve.simulated_settings import Settings, Weakness
from serve.simulated_truth import Lang, wrong_answer_for

_NORMAL: dict[str, Any] = {"outcome": "normal", "issues": []}


def with_flaws(
    answer: Mapping[str, Any],
    texts: Sequence[str],
    model: str,
    prompt: int,
    lang: Lang | None,
    settings: Settings,
    random: Random,
) -> tuple[dict[str, Any], Counter[str]]:
    """The right `answer` about records with these texts as `model` gives it to a prompt of so many
    tokens, and how many rows of it are `weak`, `faded` or `lost`."""
    weakness = settings.weak_models.get(model)
    loss = interpolated(settings.row_faults, prompt) if settings.row_faults else 0.0
    found: Counter[str] = Counter()
    results = []
    for position, (result, text) in enumerate(zip(answer["results"], texts, strict=True), start=1):
        given: dict[str, Any] | None = result
        if weakness and _is_beyond(weakness, text) and result["outcome"] == "problem":
            issues = [{**issue, "cause": "", "suggestion": ""} for issue in result["issues"]]
            given = {**result, "issues": issues}
            found["weak"] += 1
        if _fades(position, settings, random):
            given = _faded(result, text, lang, settings)
            found["faded"] += 1
        if loss and random.random() < loss:
            given = None
            found["lost"] += 1
        if given is not None:
            results.append(given)
    return {**answer, "results": results}, found


def _is_beyond(weakness: Weakness, text: str) -> bool:
    return any(phrase == "*" or phrase in text for phrase in weakness.phrases)


def _fades(position: int, settings: Settings, random: Random) -> bool:
    first = settings.fades_from
    return first is not None and position >= first and random.random() < settings.fade_share


def _faded(
    result: Mapping[str, Any], text: str, lang: Lang | None, settings: Settings
) -> dict[str, Any] | None:
    if settings.fades_as == "missing":
        return None
    if settings.fades_as == "normal":
        return {**result, **_NORMAL}
    return {**result, **wrong_answer_for(settings.truth, text, lang)}
