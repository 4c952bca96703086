"""What the parts of the gateway hand to each other: plain values, no I/O.

Invariant: `Call.body` is what the client sent, and no part changes it; what goes to a provider is
made of it in one place, `outgoing.py`. An answer that is kept is always a whole one: a stream is
put together before it is kept, and cut again for who wants a stream.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from serve.ask.contract import Usage

Endpoint = Literal["chat/completions", "embeddings"]

CacheKind = Literal["exact", "near", "semantic"]
CacheResult = Literal["off", "miss", "exact", "near", "semantic", "joined", "repeated"]
"""What the caches said: not asked; asked in vain; which one knew it; the answer is that of an equal
request in flight; the answer is that of an earlier request with the same idempotency key."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. `key`: the name of the API key, "" where none are set up; `tenant`: who shares
    nothing with any other tenant."""

    key: str = ""
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """A model at a provider, by the provider's name in fupan.yaml."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


@dataclass(frozen=True, slots=True)
class Task:
    """What a caller that names its task gets: `max_tokens` of output where it asks for no limit
    itself, and `timeout` seconds."""

    name: str
    max_tokens: int
    timeout: float


@dataclass(frozen=True, slots=True)
class CacheWish:
    """Which caches a request may use. `fresh`: they are not read (but may keep the answer)."""

    kinds: frozenset[CacheKind] = frozenset()
    fresh: bool = False


def any_answer(_: bytes) -> bool:
    """Whether an answer is of use: to who asked for nothing in particular, every one is."""
    return True


@dataclass(frozen=True, slots=True)
class Call:
    """One request, understood. `body`: as the client sent it; `name`: the model it asks for;
    `estimate`: its input tokens by our own count; `timeout`: seconds for the whole of it;
    `idempotency_key`: None where the client sent none; `targets`: whom `name` stands for, the
    first to ask first (part of what decides an answer: a cached one is never another model's);
    `usable`: whether a whole answer is worth being given again, to this request or an equal one."""

    endpoint: Endpoint
    body: Mapping[str, Any]
    caller: Caller
    request_id: str
    name: str
    stream: bool
    estimate: int
    timeout: float
    task: Task | None = None
    wish: CacheWish = CacheWish()
    idempotency_key: str | None = None
    targets: tuple[Target, ...] = ()
    usable: Callable[[bytes], bool] = any_answer


@dataclass(slots=True)
class Answered:
    """Who answered and what it took; complete once the answer is. `cost`: money in `currency`,
    None where prices are not known; times are seconds since the request arrived, None: not yet.
    `sent`: when the provider was asked, the last time; `written`: whether anything went out to one,
    so that it may have cost something."""

    target: Target | None = None
    usage: Usage | None = None
    cost: Decimal | None = None
    currency: str | None = None
    cache: CacheResult = "off"
    finish_reason: str | None = None
    attempts: int = 0
    queued: float = 0.0
    sent: float | None = None
    written: bool = False
    first_byte: float | None = None
    first_token: float | None = None
    last_byte: float | None = None


@dataclass(slots=True)
class Whole:
    """A whole answer: `body` is JSON as the provider sent it."""

    body: bytes
    about: Answered = field(default_factory=Answered)


@dataclass(slots=True)
class Stream:
    """An answer in parts: `events` yields whole server-sent events as bytes, `data: [DONE]` the
    last. Whoever does not read it to its end closes it (`aclose`), which ends the request to the
    provider. An error in the middle arrives as an event of OpenAI's error form, then the end."""

    events: AsyncIterator[bytes]
    about: Answered = field(default_factory=Answered)

    async def aclose(self) -> None:
        """End it, and the request to the provider."""
        close = getattr(self.events, "aclose", None)
        if close is not None:
            await close()


Answer = Whole | Stream
