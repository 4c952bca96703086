"""What a replica and the meter of its cluster write to each other about one key: plain values.

A replica holds a ticket for each key that is asked with: what its requests in flight may cost, and
a slice of what the key may still use. Each letter turns the ticket over: the old one ends with what
was used under it, a new one begins.

Invariant: a letter that is heard twice counts once, and gets the same answer.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal, NamedTuple

from serve.gateway.errors import GatewayError
from serve.gateway.keys import KeyRecord

SLICE_SECONDS = 0.25
"""For so long a slice is meant to last; what is not used by then is given back."""
VALID_SECONDS = 2.0
"""After which, counted from its letter, nothing more is taken of a slice whose meter is silent."""
GONE_SECONDS = 5.0
"""After which the meter counts a slice as used of which it hears nothing. Longer than
VALID_SECONDS, so that nobody uses it then."""
LATE_SECONDS = 60.0
"""For so long after its successor a letter may still arrive: six times as long as a replica waits
for an answer before it sends it again."""
LARGEST_SHARE = 10
"""A slice is at most this part of what is left: the last of it goes to single requests."""


class Asked(NamedTuple):
    """One request that waits to be let go. See `Meter.begin`."""

    tokens: int
    worst: Decimal | None


class Ahead(NamedTuple):
    """A slice: so many requests of `tokens` and `worst` each, as they were on average."""

    requests: int = 0
    tokens: float = 0.0
    worst: Decimal = Decimal(0)


class Renewal(NamedTuple):
    """A replica's letter. `old`: the ticket that ends, None: there is none; `new`: that begins,
    named by its share and a number that rises: SHARE-NUMBER.

    `requests_back`, `tokens_back`: taken and not used (tokens below zero: used besides); `spent`:
    what the requests that ended cost; `carried`: what those in flight may cost; `waiting`: who
    asks, in order; `ahead`: the slice that is wished for; `last`: nothing is in flight.
    """

    key: KeyRecord
    old: str | None
    new: str
    requests_back: float
    tokens_back: float
    spent: Decimal
    carried: Decimal
    waiting: tuple[Asked, ...]
    ahead: Ahead
    last: bool


State = Literal["open", "closed", "lost"]


class Renewed(NamedTuple):
    """The answer. `refused`: why each who waits may not go; `ahead`: requests of the slice that is
    granted.

    open: go on. closed: the ticket is of a month or currency that is over: it is only settled from
    now on, and who waits asks with another. lost: the old ticket is not known, and what it held
    counts in full; nobody was let go. A letter whose successor was heard is answered so too.
    """

    state: State
    refused: tuple[GatewayError | None, ...] = ()
    ahead: int = 0
