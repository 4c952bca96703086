"""Leases whose calls have ended well, which a client keeps for its next requests. Pure.

Invariant: a kept lease is taken once or given back; of requests that went by them and are not told
yet there are never more than the limiter has allowed.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from serve.ask.limiter_letters import OutcomeRow, SwapRow
from serve.ask.permit import Lease

MOST = 8
"""Kept at most: they count as in flight."""
KEPT_SECONDS = 0.05


class Kept(NamedTuple):
    """A lease, how its call ended, and when."""

    lease: Lease
    ended: OutcomeRow
    since: float


class KeptLeases:
    """Times are seconds of one clock that never goes back."""

    def __init__(self) -> None:
        self._kept: deque[Kept] = deque()
        self._requests = 0
        self._tokens = 0.0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def allowed(self) -> bool:
        """Whether another request may go before the limiter is told."""
        return self._requests > 0

    def allow(self, ahead: tuple[int, float], untold: list[SwapRow]) -> None:
        """The limiter allows so many requests and tokens; `untold`: of which it does not know."""
        self._requests = ahead[0] - len(untold)
        self._tokens = ahead[1] - sum(one.begun.tokens for one in untold)

    def fits(self, tokens: int) -> bool:
        """Whether a request of so many tokens may."""
        return self._requests > 0 and self._tokens >= tokens

    def went(self, tokens: int) -> None:
        """One did."""
        self._requests -= 1
        self._tokens -= tokens

    def keep(self, lease: Lease, ended: OutcomeRow, now: float) -> bool:
        """False: there are enough."""
        if len(self._kept) >= MOST or not self.allowed:
            return False
        self._kept.append(Kept(lease, ended, now))
        return True

    def take(self, tokens: int) -> Kept | None:
        """The one kept last."""
        return self._kept.pop() if self._kept and self.fits(tokens) else None

    def old(self, now: float) -> list[Kept]:
        """Those that nobody took for too long, which are not kept any more."""
        old = []
        while self._kept and now - self._kept[0].since >= KEPT_SECONDS:
            old.append(self._kept.popleft())
        return old

    def drain(self) -> list[Kept]:
        """All of them; no request may go any more before the limiter allows it."""
        kept = list(self._kept)
        self._kept.clear()
        self._requests = 0
        return kept
