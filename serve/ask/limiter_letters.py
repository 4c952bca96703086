"""What a client and the limiter of its cluster write to each other: plain values, no I/O.

Invariant: a letter that is heard twice does no harm: whatever may have been lost is said again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from typing import Any, NamedTuple

from serve.ask.contract import Class
from serve.ask.permit import Lease, LimiterStats, Limits, Outcome, OutcomeKind, Settled
from serve.ask.ratelimit_headers import readable

MOST_TOKENS = 2**53
"""Of an outcome: a provider may write any number, and integers that travel have 64 bits."""


class TicketRow(NamedTuple):
    """A ticket as it travels: see `Permits.acquire`. `cls`: None, for a token of the retry
    budget."""

    id: str
    cls: Class | None
    tokens: int
    call_seconds: float


class OutcomeRow(NamedTuple):
    """How the call under a lease ended, as it travels: see `Outcome`."""

    lease_id: str
    kind: OutcomeKind
    tokens: int | None
    retry_after: float | None
    headers: Mapping[str, str]
    status: int | None

    @classmethod
    def of(cls, lease: Lease, outcome: Outcome) -> OutcomeRow:
        """Of the headers, only those that tell of the provider's limits travel."""
        tokens = None if outcome.tokens is None else min(outcome.tokens, MOST_TOKENS)
        headers = readable(outcome.headers)
        return cls(lease.id, outcome.kind, tokens, outcome.retry_after, headers, outcome.status)


class Caller(NamedTuple):
    """A client as it presents itself, on every line first.

    `sent_requests`, `sent_tokens`: granted to it in the last minute. An actor that does not know
    the caller has replaced one that is lost, and counts them as sent.
    """

    name: str
    limits: Limits
    sent_requests: int
    sent_tokens: int

    def plain(self) -> tuple[Any, ...]:
        """As it travels."""
        return self.name, astuple(self.limits), self.sent_requests, self.sent_tokens

    @classmethod
    def read(cls, value: Any) -> Caller:
        """The reverse of `plain`. Raises ValueError."""
        try:
            name, limits, requests, tokens = value
            return cls(str(name), Limits(*limits), int(requests), int(tokens))
        except TypeError as error:
            raise ValueError("no caller") from error


class Rows(NamedTuple):
    """A letter as it travels. `stats`: whether they are asked for."""

    tickets: Iterable[TicketRow]
    outcomes: Iterable[OutcomeRow]
    unwanted: Iterable[str]
    stats: bool

    @classmethod
    def read(cls, value: Any) -> Rows:
        """What has arrived. Raises ValueError."""
        try:
            tickets, outcomes, unwanted, stats = value
            return cls(
                [TicketRow(*row) for row in tickets],
                [OutcomeRow(*row) for row in outcomes],
                unwanted,
                stats,
            )
        except TypeError as error:
            raise ValueError("no letter") from error


Decided = tuple[float, ...] | float | None
"""To a ticket: when its lease was granted and expires, or nothing of either where it was for a
token of the retry budget; or, the breaker being open, the seconds until another try is worth it; or
None: its caller was taken for dead and may ask again."""


class Reply(NamedTuple):
    """What the limiter says. `decided`: by ticket. To a letter also `breaker_open`, of each lease
    that was settled, in the letter's order, and the `stats` that it asks for; None: what is decided
    later, which follows no letter."""

    decided: Mapping[str, Decided]
    breaker_open: Iterable[bool] | None = None
    stats: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Wait:
    """A ticket, and who waits for what is `decided`. `sent`: whether any letter went with it, so
    that the actor may know of it."""

    ticket: TicketRow
    decided: asyncio.Future[tuple[float, ...]]
    sent: bool = False


@dataclass(slots=True)
class Letter:
    """What is to be said to the actor. `outcomes`: and who waits for what comes of them; `stats`:
    who waits for them; `beat`: that there is nothing to say, but somebody to be heard."""

    tickets: dict[str, TicketRow] = field(default_factory=dict)
    outcomes: dict[str, tuple[OutcomeRow, asyncio.Future[Settled] | None]] = field(
        default_factory=dict
    )
    unwanted: dict[str, None] = field(default_factory=dict)
    stats: list[asyncio.Future[LimiterStats]] = field(default_factory=list)
    beat: bool = False

    def __bool__(self) -> bool:
        return bool(self.tickets or self.outcomes or self.unwanted or self.stats or self.beat)

    def rows(self) -> Rows:
        """The letter as it travels."""
        outcomes = [row for row, _ in self.outcomes.values()]
        return Rows(list(self.tickets.values()), outcomes, list(self.unwanted), bool(self.stats))

    def hear(self, reply: Reply) -> None:
        """Tell who waits for it what comes of it."""
        waiting = [settled for _, settled in self.outcomes.values()]
        for is_open, settled in zip(reply.breaker_open or (), waiting, strict=True):
            if settled is not None and not settled.done():
                settled.set_result(Settled(is_open))
        for stats in self.stats:
            if reply.stats is not None and not stats.done():
                stats.set_result(LimiterStats(**reply.stats))

    def repeat(self, lost: Letter, waits: Mapping[str, Wait]) -> None:
        """Say again what may not have arrived, as far as somebody still waits for it; to hear it
        twice does no harm."""
        self.tickets |= {id_: row for id_, row in lost.tickets.items() if id_ in waits}
        self.outcomes |= lost.outcomes
        self.unwanted |= lost.unwanted
        self.stats += lost.stats

    def ended(self) -> Letter:
        """What it says of leases and tickets that are over, for a later one; nobody waits for what
        comes of it."""
        return Letter(
            outcomes={id_: (row, None) for id_, (row, _) in self.outcomes.items()},
            unwanted=dict(self.unwanted),
        )

    def give_up(self, error: Exception) -> None:
        """Nothing comes of it for now: who waits for the stats gets the error, and who settled
        waits no longer."""
        for _, settled in self.outcomes.values():
            if settled is not None and not settled.done():
                settled.set_result(Settled(breaker_open=False))
        for stats in self.stats:
            if not stats.done():
                stats.set_exception(error)
