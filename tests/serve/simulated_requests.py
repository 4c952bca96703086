"""Requests as the protocol's reference writes them, for the tests of the simulated provider."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx

from serve.simulated import Settings, SimulatedProvider, Truth

FAST = 1000.0
"""Simulated seconds in a real one: what would take a second takes a millisecond."""

TRUTH = Truth.model_validate(
    {
        "causes": [
            {
                "name": "pool",
                "phrases": ["connection refused", "连接被拒绝"],
                "severity": "high",
                "answers": [
                    {"lang": "en", "event": "No connection", "cause": "Pool", "suggestion": "Grow"},
                    {
                        "lang": "en",
                        "event": "Refused",
                        "cause": "Pool is full",
                        "suggestion": "Add",
                    },
                    {
                        "lang": "zh",
                        "event": "连接失败",
                        "cause": "连接池耗尽",
                        "suggestion": "扩容",
                    },
                ],
            },
            {
                "name": "praise",
                "phrases": ["great"],
                "outcome": "positive",
                "answers": [{"event": "A user praised it"}],
            },
        ]
    }
)

_STRINGS = ("event", "cause", "suggestion", "quote")
_ISSUE = {name: {"type": ["string", "null"]} for name in _STRINGS} | {
    "basis": {"enum": ["stated", "inferred"]},
    "severity": {"enum": ["info", "low", "medium", "high", "critical"]},
}


def strict_object(properties: dict[str, Any]) -> dict[str, Any]:
    """An object schema as strict mode wants it."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


RESULTS = strict_object(
    {
        "results": {
            "type": "array",
            "items": strict_object(
                {
                    "id": {"type": "string"},
                    "outcome": {"enum": ["problem", "normal", "positive", "unclear"]},
                    "issues": {"type": "array", "items": strict_object(_ISSUE)},
                }
            ),
        }
    }
)


def json_schema(schema: dict[str, Any], *, strict: bool = True) -> dict[str, Any]:
    """A `response_format` that asks for `schema`."""
    return {
        "type": "json_schema",
        "json_schema": {"name": "reply", "strict": strict, "schema": schema},
    }


def chat(user: str, system: str = "Answer in English.", **fields: Any) -> dict[str, Any]:
    """A request body; a field of None is left out."""
    body = {
        "model": "simulated",
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": user},
        ],
    } | fields
    return {name: value for name, value in body.items() if value is not None}


def analysis(texts: Sequence[str], **fields: Any) -> dict[str, Any]:
    """A request to analyse records with these texts."""
    lines = [{"id": str(i), "text": text} for i, text in enumerate(texts, start=1)]
    user = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    return chat(user, **{"response_format": json_schema(RESULTS)} | fields)


def content(response: httpx.Response) -> str:
    """The text of the answer."""
    text = response.json()["choices"][0]["message"]["content"]
    assert isinstance(text, str)
    return text


def results(response: httpx.Response) -> list[dict[str, Any]]:
    """The results in an answer that must be whole."""
    found: list[dict[str, Any]] = json.loads(content(response))["results"]
    return found


def error(response: httpx.Response) -> dict[str, Any]:
    """The error object, which must have the protocol's four members."""
    found: dict[str, Any] = response.json()["error"]
    assert set(found) == {"message", "type", "param", "code"}
    return found


class Caller:
    """A plain client of one provider."""

    def __init__(self, provider: SimulatedProvider, client: httpx.Client) -> None:
        self.provider = provider
        self.client = client

    def post(self, body: dict[str, Any], **headers: str) -> httpx.Response:
        """POST a chat completion."""
        return self.client.post("/chat/completions", json=body, headers=headers)


@contextmanager
def calling(**settings: Any) -> Iterator[Caller]:
    """A running provider with these settings, a thousand times as fast unless they say so."""
    fields = {"time_scale": FAST, "truth": TRUTH} | settings
    with (
        SimulatedProvider(Settings.model_validate(fields)) as provider,
        httpx.Client(base_url=provider.base_url, timeout=60) as client,
    ):
        yield Caller(provider, client)


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Ask again and again until it is so; the test fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
