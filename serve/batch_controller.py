"""How many tokens the next batch may have: a pure controller.

Invariant: the limit lies within its bounds; it grows only while batches are full, others wait, and
both the time of a batch and the memory allow for more; it shrinks as soon as a batch takes longer
than the target, or the device's memory or the cache is 90 % in use, and when a batch does not fit;
what did not fit is not tried again for a while.
"""

from __future__ import annotations

from dataclasses import dataclass

USED = 0.9
"""The share of memory, or of a cache, from which on the limit shrinks."""
NEAR = 0.8
"""The share of memory, of a cache, or of the target from which on it grows no more."""
FULL = 0.5
"""A batch with less than this share of the limit says nothing of a larger limit."""
AIM = 0.9
"""The share of the target that a batch shall take after one took too long."""
GROWTH = 1.25
"""Of the limit, after each batch that allows it: from the least to a hundred times that in 21."""
RETREAT = 0.75
"""Of the limit where memory or a cache is nearly full."""
OF_WAIT = 0.25
"""The share of what the queue takes that a batch may take."""
FORGET_SECONDS = 60.0
"""After which more than did not fit is tried again: memory may have been somebody else's."""


@dataclass(frozen=True)
class Bounds:
    """`least` and `most` tokens of a batch, and the seconds that one shall take at most: `target`
    where nobody waits for long, up to `longest` where the queue is long."""

    least: int
    most: int
    target: float
    longest: float


@dataclass(frozen=True)
class Batch:
    """What a batch was. `tokens`: with the padding; `waiting`: tokens that wait behind it, `wait`:
    the seconds that these take; `memory`, `cache`: the shares in use at the most."""

    tokens: int
    seconds: float
    waiting: int
    wait: float = 0.0
    memory: float = 0.0
    cache: float = 0.0


class BatchController:
    """The limit of one device. Not for several threads."""

    def __init__(self, bounds: Bounds, first: int) -> None:
        """`first`: the limit to begin with."""
        self._bounds = bounds
        self._ceiling = bounds.most
        self._forget = 0.0
        self.limit = first
        self._set(first)

    def done(self, batch: Batch, now: float) -> None:
        """A batch came to its end at `now` (monotonic seconds)."""
        if self._ceiling < self._bounds.most and now >= self._forget:
            self._ceiling = self._bounds.most
        used = max(batch.memory, batch.cache)
        target = self._target(batch.wait)
        if used >= USED:
            self._set(min(self.limit, batch.tokens) * RETREAT)
        elif batch.seconds > target:
            if batch.tokens <= self.limit:
                fair = AIM * batch.tokens * target / batch.seconds
                # One slow batch may be another's fault, who used the processor: not below half.
                self._set(max(min(self.limit, fair), self.limit / 2))
        elif (
            batch.tokens >= FULL * self.limit
            and batch.waiting > 0
            and used < NEAR
            and batch.seconds < NEAR * target
        ):
            self._set(self.limit * GROWTH)

    def did_not_fit(self, tokens: int, now: float) -> None:
        """A batch of so many tokens did not fit in memory."""
        self._ceiling = min(max(self._bounds.least, tokens // 2), self._bounds.most)
        self._forget = now + FORGET_SECONDS
        self._set(self.limit)

    def _target(self, wait: float) -> float:
        """Whoever waits long anyway gains more by large batches than by a turn that comes soon."""
        return max(self._bounds.target, min(OF_WAIT * wait, self._bounds.longest))

    def _set(self, limit: float) -> None:
        self.limit = max(self._bounds.least, min(round(limit), self._ceiling))
