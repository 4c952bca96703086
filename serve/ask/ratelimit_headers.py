"""What the `x-ratelimit-*` headers of an answer say, as OpenAI-compatible providers send them.

Invariant: a header that cannot be read is as good as absent; nothing here raises.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

PREFIX = "x-ratelimit-"

NAMES = tuple(
    f"{PREFIX}{part}-{what}"
    for part in ("limit", "remaining", "reset")
    for what in ("requests", "tokens")
)
"""Those that are read."""
LONGEST = 64
"""Characters of a value that is one."""

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST = 1e6
"""Seconds; a larger number is a date in disguise."""


@dataclass(frozen=True, slots=True)
class Quota:
    """One of the two limits: `limit` a minute, `remaining` of it, `reset` in seconds."""

    limit: float | None
    remaining: float | None
    reset: float | None


def readable(headers: Mapping[str, str]) -> dict[str, str]:
    """Those that `quota` reads, and nothing that it could not. Names in lower case, or as a mapping
    that does not mind."""
    return {
        name: value
        for name in NAMES
        if (value := headers.get(name)) and len(value) <= LONGEST and value.isascii()
    }


def quota(headers: Mapping[str, str], what: str) -> Quota:
    """The quota of `what`: "requests" or "tokens". Header names are in lower case."""
    return Quota(
        limit=_number(headers.get(f"{PREFIX}limit-{what}", "")),
        remaining=_number(headers.get(f"{PREFIX}remaining-{what}", "")),
        reset=_duration(headers.get(f"{PREFIX}reset-{what}", "")),
    )


def _number(text: str) -> float | None:
    text = text.strip()
    return float(text) if re.fullmatch(r"\d{1,15}(\.\d{1,15})?", text, re.ASCII) else None


def _duration(text: str) -> float | None:
    """Seconds in `1m30.5s`, `120ms`, `7.66s` or a plain number of seconds."""
    text = text.strip()
    seconds = _number(text)
    if seconds is None:
        parts = _DURATION.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            return None
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    return seconds if seconds <= _LONGEST else None
