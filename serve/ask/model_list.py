"""`GET /models`: what a provider says it has, where it says anything.

Invariant: nothing here raises; a list that cannot be had or read is None, since many providers
have none and answer completions all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import orjson

from serve.ask.attempt import http_client

SECONDS = 15.0
_CONTEXT_FIELDS = ("context_length", "max_model_len", "context_window", "max_context_length")
"""What servers call the tokens a model takes (OpenRouter, vLLM, Groq, others)."""


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model of the list. `context`: tokens, None where the list does not say."""

    name: str
    context: int | None


async def list_models(base_url: str, key: str | None) -> list[ListedModel] | None:
    """The models at `base_url`; None where it does not tell."""
    async with http_client(base_url, key) as client:
        try:
            answer = await client.get(f"{base_url}/models", timeout=SECONDS)
            rows = orjson.loads(answer.content)["data"] if answer.status_code == 200 else None
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return None
    if not isinstance(rows, list):
        return None
    named = [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
    return [ListedModel(row["id"], _context(row)) for row in named]


def _context(row: Mapping[str, Any]) -> int | None:
    for name in _CONTEXT_FIELDS:
        value = row.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
