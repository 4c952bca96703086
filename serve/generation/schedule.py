"""Which tokens the model computes in the next step, and in which slot their keys and values lie.

A slot is the room for the keys and values of one stream. Streams fill the slots from 0 on without
a hole: where one leaves, the last moves into its place, so that a step reads one block of memory.

Invariant: every running stream computes at least one token a step, however much is to be read, so
none starves; those that wait are served in the order they came; at most `chunk` tokens of prompts
are read in a step beside each running stream, ALONE times that where more wait than write, so that
these do not stall; what is in a slot is never used for another tenant.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, NamedTuple, Protocol, TypeVar

ALONE = 4
"""How many chunks are read at once at most: where nobody is writing, who would wait for it, or so
many times as many wait."""
WORTH_COPYING = 16
"""Tokens of a common beginning from which on copying is cheaper than computing them again."""
STEPS_TO_RECOVER = 200
"""Steps after which one slot that did not fit in memory is tried again."""


class Stream(Protocol):
    """What a schedule knows of a stream."""

    tokens: list[int]
    """Read and written so far, at least one."""
    prompt: int
    """How many of them are read."""
    computed: int
    """How many of them have their keys and values in the slot; fewer than there are tokens."""
    reused: int
    """How many of those of the prompt were copied."""
    tenant: str
    """Who may use what was computed for it."""

    @property
    def ended(self) -> bool:
        """Whether nothing more is wanted of it."""
        ...


class Copy(NamedTuple):
    """Keys and values of the first `length` tokens, from one slot to another."""

    source: int
    target: int
    length: int


class Work(NamedTuple):
    """Tokens of one stream to be computed: those from `start` on, in `slot`. `last`: the next token
    is chosen after them."""

    slot: int
    start: int
    tokens: list[int]
    last: bool


class Plan(NamedTuple):
    """One step: slots whose numbers are set to zero, then the copies in their order, then the work,
    by slot."""

    copies: list[Copy]
    works: list[Work]
    cleared: tuple[int, ...] = ()


class _Left(NamedTuple):
    """What is still in a slot that is free."""

    tokens: list[int]
    tenant: str


S = TypeVar("S", bound=Stream)
_NOTHING = _Left([], "")


class Schedule(Generic[S]):
    """The streams of one model. `slots`: at once at most; `chunk`: tokens read at once."""

    def __init__(self, slots: int, chunk: int) -> None:
        self.waiting: deque[S] = deque()
        self.running: list[S] = []
        """By slot."""
        self.limit = slots
        """How many slots are used: fewer after memory ran out."""
        self._slots = slots
        self._chunk = chunk
        self._most_chunk = chunk
        self._steps = 0
        self._left = [_NOTHING] * slots
        self._spoilt: list[int] = []

    def plan(self) -> Plan:
        """The next step. Without work where there is nothing to do."""
        self._recover()
        copies = list(self._without_ended())
        self.waiting = deque(each for each in self.waiting if not each.ended)
        budget = self._budget()
        works = []
        for slot, stream in enumerate(self.running):
            works.append(_work(slot, stream, max(1, budget)))
            budget -= len(works[-1].tokens) - 1
        while budget > 0 and self.waiting and len(self.running) < self.limit:
            stream = self.waiting.popleft()
            slot = len(self.running)
            copies += self._recalled(slot, stream)
            self.running.append(stream)
            works.append(_work(slot, stream, budget))
            budget -= len(works[-1].tokens)
        if not works:
            return Plan(copies, works)
        cleared, self._spoilt = tuple(self._spoilt), []
        return Plan(copies, works, cleared)

    def done(self, plan: Plan) -> None:
        """The keys and values of `plan` are there."""
        for work in plan.works:
            self.running[work.slot].computed += len(work.tokens)
        self._steps += 1

    def too_large(self) -> bool:
        """The step did not fit into memory: half the slots, the newest streams wait at the front,
        and are computed anew. False where it cannot be made smaller."""
        if len(self.running) <= 1 and self._chunk == 1:
            return False
        self._steps = 0
        self._chunk = max(1, self._chunk // 2)
        self.limit = max(1, min(self.limit, len(self.running)) // 2)
        while len(self.running) > self.limit:
            self._send_back(self.running.pop())
        return True

    def drop(self) -> list[S]:
        """All streams, none of which is kept, and nothing of what was computed."""
        streams = [*self.running, *self.waiting]
        self.running.clear()
        self.waiting.clear()
        self._left = [_NOTHING] * self._slots
        return streams

    def spoil(self, stream: S) -> None:
        """What was computed for `stream`, which has ended, are no numbers: its slot is cleared,
        since what is masked must be numbers, too. Called between a step and the next plan."""
        self._spoilt.append(self.running.index(stream))
        stream.computed = 0

    def _budget(self) -> int:
        """Tokens of prompts in the next step."""
        if self._chunk < self._most_chunk:
            # After memory ran out, no more than was found to fit.
            return self._chunk
        writing = sum(each.computed >= each.prompt for each in self.running)
        if not writing:
            return self._chunk * ALONE
        reading = len(self.running) - writing + len(self.waiting)
        return self._chunk * min(ALONE, max(1, reading // writing))

    def _send_back(self, stream: S) -> None:
        self._left[len(self.running)] = _NOTHING
        stream.computed = stream.reused = 0
        self.waiting.appendleft(stream)

    def _recover(self) -> None:
        if self._steps >= STEPS_TO_RECOVER:
            self._steps = 0
            self.limit = min(self._slots, self.limit + 1)
            self._chunk = min(self._most_chunk, self._chunk * 2)

    def _without_ended(self) -> Iterator[Copy]:
        """Take out the streams that have ended; the last moves into each hole."""
        for slot in reversed(range(len(self.running))):
            if not self.running[slot].ended:
                continue
            last = self.running.pop()
            source = len(self.running)
            self._left[source] = _Left(last.tokens[: last.computed], last.tenant)
            if source != slot:
                self.running[slot] = last
                yield Copy(source, slot, last.computed)

    def _recalled(self, slot: int, stream: S) -> Iterator[Copy]:
        """Copy what another slot of the same tenant has of the same beginning. The last token is
        always computed: it is what the next one is chosen after."""
        found, source = max(
            (_common(stream.tokens, self._held(each, stream.tenant)), -each)
            for each in range(self._slots)
        )
        found = min(found, len(stream.tokens) - 1)
        if found < WORTH_COPYING:
            return
        stream.computed = stream.reused = found
        if -source != slot:
            yield Copy(-source, slot, found)

    def _held(self, slot: int, tenant: str) -> list[int]:
        """The tokens whose keys and values are in `slot`, where they are `tenant`'s."""
        if slot < len(self.running):
            stream = self.running[slot]
            return stream.tokens[: stream.computed] if stream.tenant == tenant else []
        left = self._left[slot]
        return left.tokens if left.tenant == tenant else []


def _work(slot: int, stream: Stream, most: int) -> Work:
    tokens = stream.tokens[stream.computed : stream.computed + most]
    return Work(slot, stream.computed, tokens, stream.computed + len(tokens) == len(stream.tokens))


def _common(first: list[int], second: list[int]) -> int:
    """How many tokens both begin with."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
