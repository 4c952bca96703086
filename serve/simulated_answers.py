"""What a request asks for and what the model answers, rightly or spoilt by a fault.

Invariant: unless a fault spoils it an answer is right, complete, and fits the schema asked for.
Pure: a request and a truth in, a text out.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from random import Random
from typing import Any

import orjson

from serve.ask.tokens import count
from serve.simulated_document import document_answer, read_document
from serve.simulated_protocol import ChatRequest
from serve.simulated_rules import rules_answer
from serve.simulated_schema import fit
from serve.simulated_settings import RecordFault, Settings
from serve.simulated_truth import answer_for, language_asked_for

_KEY = re.compile(r'(?<!\\)":')
_FIRST_RESULT = re.compile(r'"results"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_FALLBACK_FIELDS = ("title", "event", "name", "cause", "summary")
_SAME_BY_ANOTHER_NAME = {"action": "suggestion", "severity_reason": "cause"}
_AFFECTED = 0.1
"""Share of an answer's records that a fault in its ids strikes; at least one."""
_PLAIN = "This is the simulated model: nothing was asked for in JSON."


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a user message that is a JSON object; `text` is None where it has none."""

    id: Any
    text: str | None
    fields: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The record's name in statistics: 16 hexadecimal digits of the SHA-256 of its text."""
        return hashlib.sha256((self.text or "").encode(errors="surrogatepass")).hexdigest()[:16]


def read_lines(user: str) -> tuple[Line, ...]:
    """The lines of a user message where every one is a JSON object with an `id`, else nothing."""
    lines = []
    for raw in filter(None, (part.strip() for part in user.split("\n"))):
        try:
            fields = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return ()
        if not isinstance(fields, dict) or "id" not in fields:
            return ()
        text = fields.get("text")
        lines.append(Line(fields["id"], text if isinstance(text, str) else None, fields))
    return tuple(lines)


def records_of(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines, where they are records to be analysed (each has a text), else nothing."""
    return tuple(lines) if lines and all(line.text is not None for line in lines) else ()


def _string_for(field: str, fields: Mapping[str, Any]) -> str | None:
    """What an object says that could stand in `field`: its own field of that name, else the
    one that says as much, else the first of the usual ones, else any string in it."""
    strings: dict[str, str] = {}
    for name, value in fields.items():
        first = value[0] if isinstance(value, list) and value else value
        if isinstance(first, dict):
            strings |= {k: v for k, v in first.items() if isinstance(v, str) and k not in strings}
        elif isinstance(first, str) and name != "id":
            strings[name] = first
    names = (field, _SAME_BY_ANOTHER_NAME.get(field, field), *_FALLBACK_FIELDS, *strings)
    return next((strings[name] for name in names if name in strings), None)


def _named(lines: Sequence[Line], schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """An answer with one item per line, where the schema holds a list of objects with an `id`;
    their strings are filled from the line's own."""
    for name, part in schema.get("properties", {}).items():
        item = fit(part.get("items", True), root=schema) if isinstance(part, Mapping) else None
        if not isinstance(item, dict) or "id" not in item:
            continue
        items = []
        for line in lines:
            filled = {
                field: text
                for field, value in item.items()
                if value == "" and (text := _string_for(field, line.fields)) is not None
            }
            items.append({**item, **filled, "id": line.id})
        return {name: items}
    return None


def _schema_in(instructions: str) -> dict[str, Any] | None:
    """The JSON schema of an object that is written out in the instructions, if one is."""
    decoder = JSONDecoder()
    place = instructions.find("{")
    while place >= 0:
        try:
            found, place = decoder.raw_decode(instructions, place)
        except JSONDecodeError:
            place += 1
        else:
            if found.get("type") == "object" and isinstance(found.get("properties"), dict):
                return dict(found)
        place = instructions.find("{", place)
    return None


def compose(
    request: ChatRequest, lines: Sequence[Line], settings: Settings
) -> dict[str, Any] | str:
    """The right answer: an object where JSON is asked for, else a sentence.

    A schema may come in `response_format` or be written out in the instructions. Raises
    SchemaError where it cannot be followed.
    """
    system = request.text_of("system", "developer")
    form = request.response_format
    schema = form.json_schema.schema_ if form and form.json_schema else _schema_in(system)
    preferred: dict[str, Any] | None = None
    if records := records_of(lines):
        asked = "results" in schema.get("properties", {}) if schema else "results" in system
        if asked:
            lang = language_asked_for(system)
            preferred = {
                "results": [
                    {"id": r.id, **answer_for(settings.truth, r.text or "", lang)} for r in records
                ]
            }
    elif rules := rules_answer([line.fields for line in lines], settings.forgets_rules):
        preferred = rules
    elif lines and schema:
        preferred = _named(lines, schema)
    elif schema and (document := read_document(request.text_of("user"))):
        preferred = document_answer(settings.truth, document, language_asked_for(system))
    if schema is not None:
        value = fit(schema, preferred if preferred is not None else {})
        return value if isinstance(value, dict) else {}
    wants_json = (form and form.type != "text") or "json" in system.lower()
    return (preferred or {}) if wants_json else _PLAIN


def has_results(answer: Mapping[str, Any] | str) -> bool:
    """Whether an answer holds results whose ids a fault could spoil."""
    results = answer.get("results") if isinstance(answer, Mapping) else None
    return bool(results) and all(isinstance(r, dict) and "id" in r for r in results or ())


def spoil_records(answer: Mapping[str, Any], fault: RecordFault, random: Random) -> dict[str, Any]:
    """The answer with some of its results missing, doubled (the second contradicts the first) or
    under an id that was never sent."""
    results: list[dict[str, Any]] = [dict(result) for result in answer["results"]]
    struck = random.sample(range(len(results)), max(1, round(len(results) * _AFFECTED)))
    if fault == "missing":
        results = [result for i, result in enumerate(results) if i not in struck]
    elif fault == "doubled":
        for i in struck:
            results.append({**results[i], "outcome": "unclear", "issues": []})
    else:
        for nth, i in enumerate(struck, start=1):
            results[i] = {**results[i], "id": str(len(results) + nth)}
    return {**answer, "results": results}


def break_json(text: str, random: Random) -> str:
    """The text, no longer JSON: it ends early, or the colon after a key is lost."""
    places = [match.end() - 1 for match in _KEY.finditer(text)]
    if not places:
        return text[:-1]
    place = random.choice(places[len(places) // 3 :])
    return text[:place] if random.random() < 0.5 else text[:place] + text[place + 1 :]


def cut(text: str, tokens: int) -> str:
    """The longest beginning of `text` that has no more than `tokens` tokens."""
    return text[: bisect_right(range(len(text) + 1), tokens, key=lambda end: count(text[:end])) - 1]


def good_records(text: str, records: Sequence[Line]) -> tuple[str, ...]:
    """Keys of the records that `text` answers: exactly one whole, well-formed result each.

    Results after a place where the text is broken do not count: nobody can be sure of them.
    """
    opening = _FIRST_RESULT.search(text)
    if opening is None:
        return ()
    decoder, place, results = JSONDecoder(), opening.end(), []
    while text.startswith("{", place := _BETWEEN.match(text, place).end()):  # type: ignore[union-attr]
        try:
            result, place = decoder.raw_decode(text, place)
        except JSONDecodeError:
            break
        results.append(result)
    times = Counter(str(result.get("id")) for result in results)
    formed = {
        str(r["id"]) for r in results if r.get("outcome") and isinstance(r.get("issues"), list)
    }
    return tuple(
        line.key for line in records if times[str(line.id)] == 1 and str(line.id) in formed
    )
