"""Questions that say the same words in the same order in another form: found by the digest of it.

Invariant: what is found has the same form (`serve.cache.agree.form`) in the same partition, and its
answer's time is not over; a question that is equal is preferred. The index never takes more than
`max_bytes`; what was not found for longest leaves first. Finding, adding and forgetting take the
same time however many questions are held.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from serve.cache.agree import LONGEST, Asked, form

SAME = 4
"""Questions of one form that are held in a partition; the next one takes the place of the oldest of
them, and any of them answers."""
ENTRY_BYTES = 600
"""What a question takes: measured with CPython 3.11, 494 where each is in a partition of its own.
Its text is not held."""


class _Question(NamedTuple):
    place: bytes
    text: bytes
    until: float


class NearIndex:
    """The questions of one replica whose answers are kept. See `Questions`."""

    def __init__(self, max_bytes: int, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds."""
        self._most = max_bytes // ENTRY_BYTES
        self._clock = clock
        self._questions: OrderedDict[bytes, _Question] = OrderedDict()
        self._places: dict[bytes, list[bytes]] = {}

    def __len__(self) -> int:
        return len(self._questions)

    @property
    def held(self) -> int:
        """Bytes that all questions take."""
        return ENTRY_BYTES * len(self._questions)

    async def find(self, partition: bytes, text: str) -> bytes | None:
        """See `Questions.find`."""
        place = _place(partition, text)
        if place is None:
            return None
        now, equal = self._clock(), Asked("", text).digest()
        found = None
        for key in tuple(self._places.get(place, ())):
            question = self._questions[key]
            if question.until <= now:
                self.forget(partition, key)
            elif found is None or question.text == equal:
                found = key
        if found is not None:
            self._questions.move_to_end(found)
        return found

    async def add(self, partition: bytes, text: str, key: bytes, ttl: float) -> None:
        """See `Questions.add`."""
        self.forget(partition, key)
        place = _place(partition, text)
        if place is None:
            return
        same = self._places.setdefault(place, [])
        same.append(key)
        self._questions[key] = _Question(place, Asked("", text).digest(), self._clock() + ttl)
        if len(same) > SAME:
            self.forget(partition, same[0])
        while len(self._questions) > self._most:
            self.forget(partition, next(iter(self._questions)))

    def forget(self, partition: bytes, key: bytes) -> None:
        """See `Questions.forget`."""
        question = self._questions.pop(key, None)
        if question is None:
            return
        same = self._places[question.place]
        same.remove(key)
        if not same:
            del self._places[question.place]

    async def aclose(self) -> None:
        """See `Questions.aclose`: it does nothing by itself."""


def _place(partition: bytes, text: str) -> bytes | None:
    """Where a question lies; None for one that is not compared: too long, or without a letter or a
    digit."""
    if len(text) > LONGEST or not any(map(str.isalnum, text)):
        return None
    return form(text).digest(partition)
