"""What a client and the limiter of its cluster write to each other: plain values, no I/O.

Invariant: a letter that is heard twice does no harm, and so does one from a client that is not
known: whatever may have been lost is said again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from serve.ask.contract import Class
from serve.ask.limiter_host import breaker_open
from serve.ask.permit import Lease, Limits, Outcome, OutcomeKind, Settled
from serve.ask.ratelimit_headers import PREFIX


class TicketRow(NamedTuple):
    """A ticket as it travels: see `Permits.acquire`. Rows are tuples since they are pickled in a
    third of the time that dataclasses take."""

    id: str
    cls: Class
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
        headers = {k: v for k, v in outcome.headers.items() if k.startswith(PREFIX)}
        return cls(
            lease.id, outcome.kind, outcome.tokens, outcome.retry_after, headers, outcome.status
        )


@dataclass(frozen=True, slots=True)
class Caller:
    """A client as it presents itself with every letter.

    `sent_requests`, `sent_tokens`: granted to it in the last minute. An actor that does not know
    the caller has replaced one that is lost, and counts them as sent.
    """

    name: str
    limits: Limits
    sent_requests: int
    sent_tokens: int


Decided = tuple[float, float] | float | None
"""To a ticket: when its lease was granted and expires; or, the breaker being open, the seconds
until another try is worth it; or None: its caller was taken for dead and may ask again."""


class Reply(NamedTuple):
    """`server`: changes when the actor is another one; `decided`: by ticket; `breaker_open`: of
    each lease that was settled, in the order of the letter."""

    server: str
    decided: dict[str, Decided]
    breaker_open: list[bool]


@dataclass(slots=True)
class Wait:
    """A ticket, and who waits for the answer to it. `sent`: whether any letter went with it, so
    that the actor may know of it."""

    ticket: TicketRow
    lease: asyncio.Future[Lease]
    sent: bool = False

    def answer(self, decided: tuple[float, float] | float) -> None:
        """Give who waits the lease, or BreakerOpen; see `Decided`."""
        if self.lease.done():
            return
        if isinstance(decided, float):
            self.lease.set_exception(breaker_open(decided))
        else:
            id_, cls, tokens, _ = self.ticket
            self.lease.set_result(Lease(id_, cls, tokens, *decided))


@dataclass(slots=True)
class Letter:
    """What is to be said to the actor. `outcomes`: and who waits for what comes of them."""

    tickets: dict[str, TicketRow] = field(default_factory=dict)
    outcomes: dict[str, tuple[OutcomeRow, asyncio.Future[Settled] | None]] = field(
        default_factory=dict
    )
    unwanted: dict[str, None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.tickets or self.outcomes or self.unwanted)

    def rows(self) -> tuple[list[TicketRow], list[OutcomeRow], list[str]]:
        """The letter as it travels."""
        outcomes = [row for row, _ in self.outcomes.values()]
        return list(self.tickets.values()), outcomes, list(self.unwanted)

    def tell_settled(self, are_open: Sequence[bool]) -> None:
        """Tell who waits for it whether the breaker is open, of each lease in its order."""
        waiting = [settled for _, settled in self.outcomes.values()]
        for is_open, settled in zip(are_open, waiting, strict=True):
            if settled is not None and not settled.done():
                settled.set_result(Settled(is_open))

    def repeat(self, lost: Letter, waits: Mapping[str, Wait]) -> None:
        """Say again what may not have arrived, as far as somebody still waits for it; to hear it
        twice does no harm."""
        self.tickets |= {id_: row for id_, row in lost.tickets.items() if id_ in waits}
        self.outcomes |= lost.outcomes
        self.unwanted |= lost.unwanted
