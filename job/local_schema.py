"""JSON schemas as a small model can keep to them. Pure.

Invariant: what fits the schema given here fits the one it was made from; no text or list of it can
go on until the answer is cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from job.instructions import ANSWER_SCHEMA
from serve.ask.judgement import strict_object

MOST_CHARACTERS = 100
"""Of a text: a short sentence, some 25 tokens. A small model that is not stopped repeats itself."""
MOST_ITEMS = 8
"""Of a list that names no number."""
MOST_NAMED = 200
"""Records of a pack each of which has its place in the schema: some 800 bytes a record, of the
256 KB that a model of the cluster takes."""

_ITEM = ANSWER_SCHEMA["properties"]["results"]["items"]["properties"]
_ISSUE = _ITEM["issues"]["items"]["properties"]


def bounded(schema: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` with an end to each text and list."""
    made = {name: _within(value) for name, value in schema.items()}
    if "string" in _types(made) and "enum" not in made and "const" not in made:
        made.setdefault("maxLength", MOST_CHARACTERS)
    if "array" in _types(made):
        made.setdefault("maxItems", MOST_ITEMS)
    return made


def pack_schema(ids: Sequence[str]) -> dict[str, Any]:
    """Of the answer about the records `ids`: each once, in their order, with what its outcome asks
    for (DESIGN 2). Of more than MOST_NAMED: as many as there are, each one of them."""
    results: dict[str, Any] = {"items": _results({"enum": list(ids)})}
    if len(ids) <= MOST_NAMED:
        results = {"prefixItems": [_results({"const": each}) for each in ids], "items": False}
    count = {"minItems": len(ids), "maxItems": len(ids)}
    made = strict_object({"results": {"type": "array", **results, **count}})
    return {**made, "$defs": _ISSUES}


def _results(id_schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "anyOf": [
            strict_object(
                {
                    "id": dict(id_schema),
                    "outcome": {"const": outcome},
                    "issues": {"$ref": f"#/$defs/{outcome}"},
                }
            )
            for outcome in _ISSUES
        ]
    }


def _issues(**given: dict[str, Any]) -> dict[str, Any]:
    """Exactly one issue. `given`: what it has beyond the schema of any."""
    issue = strict_object(bounded({**_ISSUE, **given}))
    return {"type": "array", "items": issue, "minItems": 1, "maxItems": 1}


def _within(value: Any) -> Any:
    if isinstance(value, Mapping):
        return bounded(value)
    if isinstance(value, list):
        return [_within(each) for each in value]
    return value


def _types(schema: Mapping[str, Any]) -> Sequence[str]:
    named = schema.get("type", ())
    return (named,) if isinstance(named, str) else named if isinstance(named, list) else ()


_NONE = {"type": "array", "maxItems": 0, "items": strict_object(bounded(_ISSUE))}
_SAID = {"type": "string", "minLength": 1, "maxLength": MOST_CHARACTERS}
_ISSUES: dict[str, dict[str, Any]] = {
    "problem": _issues(event=_SAID, cause=_SAID, suggestion=_SAID),
    "normal": _NONE,
    "positive": _issues(
        event=_SAID, cause={"type": "null"}, suggestion={"type": "null"}, severity={"const": "info"}
    ),
    "unclear": _NONE,
}
"""What an answer's issues are, by its outcome."""
