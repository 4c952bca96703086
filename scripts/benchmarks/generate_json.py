"""Answers to JSON schemas: how many fit, of those that the model ended itself.

A small model sometimes writes on and on within what a schema allows, until it is cut; another
answer is asked for then.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import jsonschema

from job.local_schema import pack_schema
from serve.ask.judgement import strict_object

AT_ONCE = 24
"""Answers asked for at a time."""
TOKENS = 240
"""Of an answer at most; one that is cut there says so, and counts as cut."""
MOST_ASKED = 3
"""Times as many answers as are wanted are asked for at most."""

_TEXT = {"type": "string", "maxLength": 60}
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "flat": strict_object({"name": _TEXT, "age": {"type": "integer"}, "ok": {"type": "boolean"}}),
    "enum": strict_object(
        {"mood": {"enum": ["good", "bad", "mixed"]}, "score": {"type": "number"}}
    ),
    "list": strict_object({"tags": {"type": "array", "items": _TEXT, "maxItems": 4}}),
    "nested": strict_object(
        {
            "user": strict_object(
                {"id": {"type": "string", "pattern": "^u-[0-9]{4}$"}, "note": _TEXT}
            )
        }
    ),
    "either": {"anyOf": [strict_object({"yes": _TEXT}), strict_object({"no": {"type": "null"}})]},
    "optional": {
        "type": "object",
        "properties": {"a": _TEXT, "b": {"type": ["integer", "null"]}},
        "required": ["a"],
        "additionalProperties": False,
    },
    "dated": strict_object({"day": {"type": "string", "format": "date"}, "what": _TEXT}),
    "tree": {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": strict_object(
                {
                    "name": {"type": "string", "maxLength": 8},
                    "below": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 1},
                }
            )
        },
    },
    "pack": pack_schema(["1", "2"]),
    "object": {"type": "object"},
}
"""By name: what applications ask with, and what a run does."""
_ABOUT = ("a café in Porto", "the error `disk full` at 10:02", "退款三天还没到账", "a 😀 day", "42")


class Kept(NamedTuple):
    """Of `asked` answers, those that the model ended and those that were cut. `wrong`: ended, but
    no JSON that fits; `whys`: why, of a few."""

    asked: int
    ended: int
    wrong: int
    whys: tuple[str, ...]

    def __str__(self) -> str:
        cut = self.asked - self.ended
        said = f"{self.asked} answers to {len(SCHEMAS)} schemas: {self.ended} ended, {cut} were cut"
        return "\n".join((f"{said}, {self.wrong} of those that ended do not fit", *self.whys))


async def constrained(server: Any, count: int, seed: int) -> Kept:
    """Ask `server` for answers, at a temperature of 1, until `count` have ended."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> str | None:
        async with room:
            return await _asked(server, number, seed)

    asked, ended = 0, list[str]()
    while len(ended) < count and asked < MOST_ASKED * count:
        more = range(asked, asked + count - len(ended))
        told = await asyncio.gather(*map(one, more))
        asked += len(more)
        ended += [why for why in told if why is not None]
    wrong = [why for why in ended if why]
    return Kept(asked, len(ended), len(wrong), tuple(wrong[:5]))


async def _asked(server: Any, number: int, seed: int) -> str | None:
    """Why the answer does not fit its schema; "" where it does, None where it was cut."""
    name = list(SCHEMAS)[number % len(SCHEMAS)]
    schema = SCHEMAS[name]
    body = {
        "model": "smollm2-135m",
        "messages": [
            {"role": "user", "content": f"Describe {_ABOUT[number % len(_ABOUT)]} as JSON."}
        ],
        "temperature": 1,
        "seed": seed * 100_003 + number,
        "max_tokens": TOKENS,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": name, "schema": schema, "strict": True},
        },
    }
    answer = json.loads(await server.answer("chat/completions", body, 3600))
    choice = answer["choices"][0]
    if choice["finish_reason"] != "stop":
        return None
    return _why_not(choice["message"]["content"], schema, name)


def _why_not(text: str, schema: Mapping[str, Any], name: str) -> str:
    """Why `text` does not fit; empty where it does."""
    try:
        jsonschema.validate(json.loads(text), schema)
    except (ValueError, jsonschema.ValidationError) as error:
        return f"{name}: {str(error).splitlines()[0]}: {text[:200]}"
    return ""
