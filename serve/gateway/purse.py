"""What a key may spend in a month: exact money under a limit. Pure: values in, decisions out.

Invariant: what was spent and what the requests in flight may cost at worst are together at most the
limit, and a request counts once: its worst until it has ended, then what it cost, or its worst
where nobody can tell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

NOTHING = Decimal(0)


def month_of(at: float) -> str:
    """The calendar month (UTC) of `at`, seconds since the epoch: 2026-11."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m")


def next_month(at: float) -> float:
    """When the month after that of `at` begins; both seconds since the epoch."""
    day = datetime.fromtimestamp(at, UTC)
    year, month = divmod(day.year * 12 + day.month, 12)
    return datetime(year, month + 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class Account:
    """Whose money of which month, in which currency."""

    key: str
    month: str
    currency: str


@dataclass(slots=True)
class Purse:
    """One account: what was `spent`, and what is `held` by requests in flight, by ticket."""

    spent: Decimal = NOTHING
    held: dict[str, Decimal] = field(default_factory=dict)
    reserved: Decimal = NOTHING

    def left(self, limit: Decimal) -> Decimal:
        """What is not spent yet; below zero where the limit was lowered."""
        return limit - self.spent

    def fits(self, worst: Decimal, limit: Decimal) -> bool:
        """Whether a request may go that costs `worst` at most."""
        return self.spent + self.reserved + worst <= limit

    def hold(self, ticket: str, worst: Decimal) -> None:
        """A request goes."""
        self.held[ticket] = worst
        self.reserved += worst

    def hold_more(self, ticket: str, worst: Decimal) -> None:
        """Another request goes by the ticket."""
        self.held[ticket] += worst
        self.reserved += worst

    def settle(self, ticket: str, cost: Decimal | None) -> Decimal:
        """The request has ended; what it counts for. None: nobody knows what it cost."""
        worst = self.held.pop(ticket)
        self.reserved -= worst
        counts = worst if cost is None else cost
        self.spent += counts
        return counts
