"""A reply -> answers, and what is wrong with it. Pure.

Invariant: every id that was asked is either in `answers` or in `wrong`, never in both; nothing the
model says of an id that was not asked is used; nothing that is cut off is completed by guessing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from job.quotes import align_quote
from job.records import OUTCOMES, SEVERITIES, Answer, Issue

Wrong = Literal["missing", "doubled", "unusable"]

MAX_FIELD_CHARACTERS = 1000
"""Of event, cause and suggestion: short sentences are asked for; more is cut, with a flag."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reply is worth.

    `answers`: good as they are, by id. `incomplete`: usable, but a required field of a problem is
    empty. `wrong`: the ids that must be asked again, and why. `whole`: the reply was complete JSON
    and not cut off. `invented`: ids that were never asked. `weights`: bytes of each answer's JSON.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    incomplete: dict[str, Answer] = field(default_factory=dict)
    wrong: dict[str, Wrong] = field(default_factory=dict)
    whole: bool = True
    invented: int = 0
    weights: dict[str, int] = field(default_factory=dict)


def validate(reply: str, finish_reason: str, texts: Mapping[str, str]) -> Verdict:
    """Judge `reply` to a pack whose records were sent under the ids of `texts`."""
    objects, complete = result_objects(reply)
    counts = Counter(_id(item) for item in objects)
    verdict = Verdict(
        whole=complete and finish_reason != "length",
        invented=sum(n for key, n in counts.items() if key not in texts),
    )
    for item in objects:
        key = _id(item)
        if key not in texts:
            continue
        if counts[key] > 1:
            verdict.wrong[key] = "doubled"
            continue
        verdict.weights[key] = len(orjson.dumps(item))
        answer = _answer(item, texts[key])
        if answer is None:
            verdict.wrong[key] = "unusable"
        elif _is_incomplete(answer):
            verdict.incomplete[key] = answer
        else:
            verdict.answers[key] = answer
    known = verdict.answers.keys() | verdict.incomplete.keys() | verdict.wrong.keys()
    verdict.wrong.update({key: "missing" for key in texts if key not in known})
    return verdict


def result_objects(reply: str) -> tuple[list[dict[str, Any]], bool]:
    """The result objects that stand whole in `reply`, and whether the reply itself was whole.

    A fence of backquotes or prose around the JSON is stepped over; of a broken or cut document
    only objects that are complete by themselves are taken.
    """
    text = _unfenced(reply)
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _whole_objects(text), False
    items = data.get("results") if isinstance(data, dict) else data
    if isinstance(items, dict):
        items = [items]
    if items is None and isinstance(data, dict) and "outcome" in data:
        items = [data]
    if not isinstance(items, list):
        return [], False
    return [item for item in items if isinstance(item, dict)], True


_FENCE = re.compile(r"^```[a-zA-Z]*\s*\n(.*?)\n?```\s*$", re.DOTALL)


def _unfenced(reply: str) -> str:
    text = reply.strip()
    fenced = _FENCE.match(text)
    if fenced:
        return fenced[1]
    start = text.find("{")
    return text[start:] if start > 0 and not text.startswith("[") else text


def _whole_objects(text: str) -> list[dict[str, Any]]:
    """Complete result objects of a broken document: each is parsed by itself, from its opening
    brace to the brace that closes it."""
    found: list[dict[str, Any]] = []
    start = text.find("[")
    position = text.find("{", start + 1) if start >= 0 else -1
    while position >= 0:
        end = _closing_brace(text, position)
        if end is None:
            break
        try:
            item = orjson.loads(text[position : end + 1])
        except orjson.JSONDecodeError:
            item = None
        if isinstance(item, dict) and "id" in item and "outcome" in item:
            found.append(item)
            position = text.find("{", end + 1)
        else:
            position = text.find("{", position + 1)
    return found


_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]|"', re.DOTALL)


def _closing_brace(text: str, start: int) -> int | None:
    depth = 0
    for token in _STRUCTURE.finditer(text, start):
        if token[0] == "{":
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if depth == 0:
                return token.start()
        elif token[0] == '"':
            return None
    return None


def _id(item: Mapping[str, Any]) -> str:
    value = item.get("id")
    return str(value).strip() if isinstance(value, str | int) else ""


def _answer(item: Mapping[str, Any], text: str) -> Answer | None:
    """One result object as an Answer; None if its outcome or the shape of its issues is no use."""
    outcome = _word(item.get("outcome"), OUTCOMES)
    issues = item.get("issues")
    if outcome is None or not isinstance(issues, list | None):
        return None
    flags: set[str] = set()
    if outcome == "normal":
        return Answer("normal")
    kept = [_issue(issue, text, flags) for issue in issues or () if isinstance(issue, dict)]
    if outcome == "positive":
        kept = [_praise(issue) for issue in kept[:1]]
    return Answer(outcome, tuple(kept), tuple(sorted(flags)))


def _issue(issue: Mapping[str, Any], text: str, flags: set[str]) -> Issue:
    quote = _text(issue.get("quote"), flags, limit=None)
    aligned = align_quote(quote, text) if quote else None
    if quote and aligned is None:
        flags.add("quote_not_found")
    severity = _word(issue.get("severity"), SEVERITIES)
    if severity is None:
        flags.add("severity_unknown")
    return Issue(
        event=_text(issue.get("event"), flags) or "",
        cause=_text(issue.get("cause"), flags),
        basis="stated"
        if _word(issue.get("basis"), ("stated", "inferred")) == "stated"
        else "inferred",
        suggestion=_text(issue.get("suggestion"), flags),
        severity=severity or "medium",
        quote=aligned,
    )


def _praise(issue: Issue) -> Issue:
    return Issue(issue.event, None, issue.basis, None, "info", issue.quote)


def _is_incomplete(answer: Answer) -> bool:
    """DESIGN 2: causes and suggestions are required of problems only; praise must be named."""
    if answer.outcome == "problem":
        return not answer.issues or not all(
            issue.event and issue.cause and issue.suggestion for issue in answer.issues
        )
    if answer.outcome == "positive":
        return not answer.issues or not answer.issues[0].event
    return False


def _word(value: object, words: Collection[Any]) -> Any:
    word = value.strip().lower() if isinstance(value, str) else None
    return word if word in words else None


def _text(value: object, flags: set[str], limit: int | None = MAX_FIELD_CHARACTERS) -> str | None:
    if not isinstance(value, str):
        return None
    text = " ".join(value.split()) if limit else value.strip()
    if limit and len(text) > limit:
        flags.add("answer_shortened")
        text = text[:limit]
    return text or None
