"""What is asked of a model and what comes back: plain values, no I/O.

Invariant: a Request holds everything that decides the bytes sent, so that equal requests are
equal values; a Reply holds everything that decides what they cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

CONTRACT_VERSION = 1
"""Part of every stored answer's key: raised when a stored answer must not be used any more."""

Class = Literal["online", "fast", "slow", "retry"]
"""Whose turn it is at the limiter; see `limiter.py`."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them; `cached` is the part of `tokens_in` it had cached."""

    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One chat completion.

    `max_output` and `estimate_in` are tokens, `timeout` seconds. `schema` asks for JSON that fits
    it, as strictly as the provider can (see `capabilities.py`). `model`: None, the asker's own.
    `billed_to`: for whom it is asked, (what, source) -> weight; it changes nothing that is sent.
    `optional`: there is a way to do without; where it may not be paid for, smaller ones still may.
    """

    system: str
    user: str
    max_output: int
    estimate_in: int
    timeout: float
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    schema_name: str = "reply"
    temperature: float = 0.0
    model: str | None = None
    billed_to: Mapping[tuple[str, str], float] = field(
        default_factory=dict, hash=False, compare=False
    )
    optional: bool = field(default=False, hash=False, compare=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """One completion. `finish_reason` is the provider's (`stop`, `length`, `content_filter`, ...);
    `seconds` is the time from sending to the last byte."""

    text: str
    finish_reason: str
    usage: Usage
    model: str
    seconds: float


class Model(Protocol):
    """Whoever answers: a provider over HTTP, or a model of the cluster."""

    async def complete(
        self, body: Mapping[str, Any], limit: float
    ) -> tuple[Reply, Mapping[str, str]]:
        """The reply to one attempt with `body`, within `limit` seconds, and the headers that came
        with it (lower case). Raises an AskError."""
        ...

    async def aclose(self) -> None:
        """Let go of what was held for asking."""
        ...
