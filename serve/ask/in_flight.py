"""The calls in flight: the leases in use, and when each expires. Pure.

Invariant: a lease is in use from `add` to its one `release`; `next_expiry` tells of no other.
Times are seconds of the limiter's clock.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from serve.ask.contract import Class
from serve.ask.permit import Lease

SETTLED_KEPT = 1000
"""Expiries of settled leases that are kept among the others: to clear them out one by one would
cost more, and to wait until they are due keeps minutes of them."""


@dataclass(slots=True)
class Call:
    """A lease in use, and its number in the order of granting (1 for the first)."""

    lease: Lease
    number: int


class InFlight:
    """`peak`: the most that were in flight at once."""

    def __init__(self) -> None:
        self.peak = 0
        self._calls: dict[str, Call] = {}
        self._expiries: list[tuple[float, str]] = []
        self._of_class: Counter[Class] = Counter()

    def __len__(self) -> int:
        return len(self._calls)

    def get(self, lease_id: str) -> Call | None:
        """None: the lease is not in use."""
        return self._calls.get(lease_id)

    def of_class(self, cls: Class) -> int:
        """How many calls of the class there are."""
        return self._of_class[cls]

    def add(self, lease: Lease, number: int) -> None:
        """A lease is granted."""
        self._calls[lease.id] = Call(lease, number)
        self._of_class[lease.cls] += 1
        heapq.heappush(self._expiries, (lease.expires_at, lease.id))
        if len(self._expiries) > 2 * len(self._calls) + SETTLED_KEPT:
            self._expiries = [(call.lease.expires_at, id_) for id_, call in self._calls.items()]
            heapq.heapify(self._expiries)
        self.peak = max(self.peak, len(self._calls))

    def release(self, lease_id: str) -> Call | None:
        """The lease is in use no more; None: it was not."""
        call = self._calls.pop(lease_id, None)
        if call is not None:
            self._of_class[call.lease.cls] -= 1
        return call

    def next_expiry(self) -> tuple[float, str] | None:
        """When the next lease in use expires, and its id; those settled before are dropped on the
        way."""
        while self._expiries and self._expiries[0][1] not in self._calls:
            heapq.heappop(self._expiries)
        return self._expiries[0] if self._expiries else None

    def next_expires_at(self) -> float:
        """Infinity: no lease is in use."""
        expiry = self.next_expiry()
        return expiry[0] if expiry else math.inf

    def counted(self, too_old: Callable[[int], bool]) -> int:
        """How many there are but for the first, as long as their number is `too_old`."""
        old = 0
        for call in self._calls.values():
            if not too_old(call.number):
                break
            old += 1
        return len(self._calls) - old
