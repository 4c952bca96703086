"""The step that is repeated for as long as there are streams: schedule -> run -> postprocess.

Invariant: a stream fails only for what is wrong with it, or where the model itself is broken; a
step that does not fit into memory is made smaller until it does.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from serve.ask.errors import AskError, Unavailable
from serve.generation.errors import StepTooLarge, broke
from serve.generation.schedule import Plan, Schedule
from serve.generation.sequence import Piece, Sequence
from serve.models.numbers import BATCH_SIZE, CACHE_USE, RUNNING, TOKENS_PER_SECOND

LATELY = 64
"""Steps over which speed and batch size are measured."""
STALE_SECONDS = 10.0
"""After which nothing counts as lately."""


class Forward(Protocol):
    """The model over the slots of one device."""

    slots: int
    context: int

    def run(self, plan: Plan) -> NDArray[np.float32]:
        """The logits after the last token of each work of `plan` that is `last`, by row. Raises
        StepTooLarge."""
        ...


class _Step(NamedTuple):
    began: float
    ended: float
    written: int


class Engine:
    """Runs streams. `step` is called by one thread; `add` and `numbers` by any."""

    def __init__(
        self, forward: Forward, chunk: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`chunk`: see `Schedule`."""
        self._forward = forward
        self._schedule: Schedule[Sequence] = Schedule(forward.slots, chunk)
        self._arrived: deque[Sequence] = deque()
        self._clock = clock
        self._lately: deque[_Step] = deque(maxlen=LATELY)
        self.broken: Exception | None = None
        """Why the model will not answer any more."""

    @property
    def slots(self) -> int:
        """Streams that are written at once at most."""
        return self._schedule.limit

    def add(self, stream: Sequence) -> None:
        """Let `stream` wait for a slot."""
        self._arrived.append(stream)

    def step(self) -> list[tuple[Sequence, Piece]] | None:
        """One step: what became ready. None: there was nothing to do."""
        began = self._clock()
        schedule = self._schedule
        while self._arrived:
            schedule.waiting.append(self._arrived.popleft())
        if self.broken is not None:
            return self._drop(self.broken) or None
        plan = schedule.plan()
        if not plan.works:
            return None
        try:
            logits = self._forward.run(plan)
        except StepTooLarge:
            if schedule.too_large():
                return []
            return [(each, each.fail(_no_memory())) for each in schedule.running]
        except Exception as error:
            self.broken = error
            return self._drop(error)
        schedule.done(plan)
        chosen = [schedule.running[work.slot] for work in plan.works if work.last]
        pieces = [self._advance(*each) for each in zip(chosen, logits, strict=True)]
        self._lately.append(_Step(began, self._clock(), len(chosen)))
        return pieces

    def numbers(self) -> Mapping[str, float]:
        """What is measured, by the names of `serve.models.numbers`."""
        running = [each for each in list(self._schedule.running) if not each.ended]
        steps = list(self._lately)
        if not steps or self._clock() - steps[-1].ended > STALE_SECONDS:
            steps = []
        written = sum(each.written for each in steps)
        seconds = steps[-1].ended - steps[0].began if steps else 0.0
        room = self._forward.slots * self._forward.context
        return {
            RUNNING: len(running),
            BATCH_SIZE: written / len(steps) if steps else 0.0,
            TOKENS_PER_SECOND: written / seconds if seconds else 0.0,
            CACHE_USE: sum(each.computed for each in running) / room,
        }

    def _advance(self, stream: Sequence, logits: NDArray[np.float32]) -> tuple[Sequence, Piece]:
        """The next token of one stream. What goes wrong with it ends that stream alone."""
        ill = not np.isfinite(logits.max())
        if ill:
            # Whoever comes into its slot would get the same, also where it has left just now.
            self._schedule.spoil(stream)
        if stream.ended:
            return stream, Piece()
        try:
            if ill:
                raise FloatingPointError("the model's logits are not numbers")
            return stream, stream.advance(logits)
        except AskError as error:
            return stream, stream.fail(error)
        except Exception as error:
            return stream, stream.fail(Unavailable(f"this answer could not go on: {error}", 500))

    def _drop(self, error: Exception) -> list[tuple[Sequence, Piece]]:
        """Fail all streams with the `error` after which nothing is computed any more."""
        failure = broke(error)
        return [(each, each.fail(failure)) for each in self._schedule.drop() if not each.ended]


def _no_memory() -> Unavailable:
    return Unavailable("this request alone does not fit into the model's memory", 503, 30.0)
