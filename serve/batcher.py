"""Batches for a device: the slot is taken first, then a batch is filled from all who wait by then.

Invariant: at most `slots` batches are computed at once and nobody waits while a slot is free; every
work ends with a result, with an error or by being withdrawn before it began; what nobody waits for
any more, or what can no longer be ready in time, is not begun. (Ray Serve's own batching forms a
batch before there is a slot for it: under load it had 1 to 5 of 32.)
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from serve.batch_choice import choose
from serve.batch_controller import Batch, BatchController

WINDOW = 512
"""Of those who wait, looked at for one batch: as many as the embedder sorts by length."""
WEIGHT = 0.2
"""Of the last batch in the mean speed."""
LONG = 4
"""Times `enough`: what a slot may take of a queue before that is cut into smaller batches."""
TRUSTED_SECONDS = 10.0
"""For which the mean speed is believed after a batch. What seems to be too late is not computed:
believed for ever, a device that was slow once would never be tried again."""

Value = TypeVar("Value")
Result = TypeVar("Result")


class TooLate(Exception):
    """It would not have been ready in time."""


class Closed(Exception):
    """The batcher has ended."""


@dataclass(eq=False)
class Work(Generic[Value, Result]):
    """One of a batch. `until`: when nobody waits for it any more, by the loop's clock; may rise
    while it waits."""

    value: Value
    tokens: int
    until: float
    begun: bool = False
    done: asyncio.Future[Result] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Computed(NamedTuple, Generic[Result]):
    """A result or error for each value of a batch, in order. `fitted`: whether all fitted in memory
    at once; `memory`, `cache`: the shares in use."""

    results: Sequence[Result | Exception]
    fitted: bool = True
    memory: float = 0.0
    cache: float = 0.0


class _Run(NamedTuple):
    """A batch that is being computed, since when, by the loop's clock."""

    since: float
    tokens: int


class Batcher(Generic[Value, Result]):
    """Belongs to the loop of its first work."""

    def __init__(
        self,
        compute: Callable[[Sequence[Value]], Awaitable[Computed[Result]]],
        controller: BatchController,
        slots: int,
        enough: int = 1,
        padded: bool = False,
    ) -> None:
        """`compute`: one batch, `slots` of them at once; `enough`: tokens from which on a larger
        batch is no more efficient, so that a short queue is better shared among the slots;
        `padded`: see `choose`."""
        self._compute = compute
        self._controller = controller
        self._slots = slots
        self._enough = enough
        self._padded = padded
        self._waiting: dict[Work[Value, Result], None] = {}
        self._running: dict[asyncio.Task[None], _Run] = {}
        self._filling = False
        self._closed = False
        self._learned = -math.inf
        self.waiting_tokens = 0
        self.mean_batch = 0.0
        """Works of a batch, lately."""
        self.mean_speed = 0.0
        """Tokens a second of one slot, lately, those of padding not counted; 0: not known yet."""
        self._speed = 0.0  # the same, had each batch had `enough` tokens

    @property
    def waiting(self) -> int:
        """Works that wait."""
        return len(self._waiting)

    def seconds(self, tokens: int) -> float:
        """In which so many tokens, added now, may be ready; 0: not known yet. Rather too few: the
        small batches of a short queue are slower for each token than those of a long one."""
        if not self._speed:
            return 0.0
        computing = sum(run.tokens for run in self._running.values())
        ahead = self.waiting_tokens + computing + tokens
        return ahead / (self._speed * self._slots)

    def longest(self) -> float:
        """Seconds that the oldest batch has been computed for."""
        now = asyncio.get_running_loop().time()
        return max((now - run.since for run in self._running.values()), default=0.0)

    def add(self, works: Iterable[Work[Value, Result]]) -> None:
        """Have them computed. Raises Closed."""
        if self._closed:
            raise Closed("the model is being let go of")
        for work in works:
            self._waiting[work] = None
            self.waiting_tokens += work.tokens
        if not self._filling:
            # Whatever else comes in this turn of the loop is seen by the first batch, too.
            self._filling = True
            asyncio.get_running_loop().call_soon(self._fill)

    def withdraw(self, work: Work[Value, Result]) -> None:
        """Nobody waits for it any more: it is not computed if that has not begun, and has its
        result if it has."""
        self._leave(work)
        if not work.begun:
            work.done.cancel()

    async def aclose(self) -> None:
        """End: those who wait are told Closed, and what is being computed is waited for."""
        self._closed = True
        for work in list(self._waiting):
            self._leave(work)
            _tell(work, Closed("the model is being let go of"))
        if self._running:
            await asyncio.wait(self._running)

    def _leave(self, work: Work[Value, Result]) -> None:
        if work in self._waiting:
            del self._waiting[work]
            self.waiting_tokens -= work.tokens

    def _fill(self) -> None:
        """Give each free slot a batch."""
        self._filling = False
        share = self._share()
        while self._waiting and len(self._running) < self._slots:
            batch = self._next(share)
            if not batch:
                return
            loop = asyncio.get_running_loop()
            task = loop.create_task(self._run(batch))
            self._running[task] = _Run(loop.time(), sum(work.tokens for work in batch))
            task.add_done_callback(self._ended)

    def _share(self) -> int:
        """Tokens of those who wait that one slot may take."""
        share = self.waiting_tokens // self._slots
        # Twice as many batches as slots, so that the slots end at about the same time: but only
        # where halves are efficient, too.
        return max(self._enough, min(share, LONG * self._enough), share // 2)

    def _next(self, share: int) -> list[Work[Value, Result]]:
        """The next batch, taken out of those who wait."""
        oldest = self._oldest_in_time()
        if not oldest:
            return []
        limit = min(self._controller.limit, share)
        chosen = choose([w.tokens for w in oldest], limit, self._padded, self._enough)
        batch = [oldest[at] for at in chosen]
        for work in batch:
            self._leave(work)
            work.begun = True
        return batch

    def _oldest_in_time(self) -> list[Work[Value, Result]]:
        """Of those who wait; whoever is too late is told, and waits no more."""
        now = asyncio.get_running_loop().time()
        trusted = now - self._learned < TRUSTED_SECONDS
        while self._waiting:
            oldest: list[Work[Value, Result]] = []
            late: list[Work[Value, Result]] = []
            for work in islice(self._waiting, WINDOW):
                needed = work.tokens / self._speed if trusted else 0.0
                (late if now + needed >= work.until else oldest).append(work)
            for work in late:
                self._leave(work)
                _tell(work, TooLate("its time was over before its turn came"))
            if oldest:
                return oldest
        return []

    async def _run(self, batch: Sequence[Work[Value, Result]]) -> None:
        loop = asyncio.get_running_loop()
        since = loop.time()
        try:
            computed = await self._compute([work.value for work in batch])
        except Exception as error:
            for work in batch:
                _tell(work, error)
            return
        now = loop.time()
        for work, result in zip(batch, computed.results, strict=True):
            _tell(work, result)
        self._learn(batch, computed, now - since, now)

    def _learn(
        self,
        batch: Sequence[Work[Value, Result]],
        computed: Computed[Result],
        seconds: float,
        now: float,
    ) -> None:
        tokens = sum(work.tokens for work in batch)
        cost = max(work.tokens for work in batch) * len(batch) if self._padded else tokens
        seconds = max(seconds, 1e-6)
        self._learned = now
        self._speed = _mean(self._speed, max(tokens, self._enough) / seconds)
        self.mean_speed = _mean(self.mean_speed, tokens / seconds)
        self.mean_batch = _mean(self.mean_batch, len(batch))
        if not computed.fitted:
            self._controller.did_not_fit(cost, now)
            return
        wait = self.waiting_tokens / (self._speed * self._slots)
        self._controller.done(
            Batch(cost, seconds, self.waiting_tokens, wait, computed.memory, computed.cache), now
        )

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        self._fill()


def _mean(mean: float, value: float) -> float:
    """With one more value; the first is the mean itself."""
    return mean + WEIGHT * (value - mean) if mean else value


def _tell(work: Work[Value, Result], outcome: Result | Exception) -> None:
    if work.done.done():
        return
    if isinstance(outcome, Exception):
        work.done.set_exception(outcome)
        # Whoever waited may be gone: then nobody asks what went wrong.
        work.done.exception()
    else:
        work.done.set_result(outcome)
