"""Questions that say the same words in another form: found by their fingerprints, then compared
themselves.

Invariant: what is found is alike as a text (`LIKENESS`), says its words in the same order and
agrees in numbers, names, negation and direction. Nothing is found in another partition, or after
its answer's time. The index never takes more than `max_bytes`; what was not found for longest
leaves first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from serve.cache.agree import Reading, agree, reading
from serve.cache.simhash import BANDS, bands, distance, fingerprint, likeness, words_of

DISTANCE = BANDS - 1
"""Bits in which two fingerprints may differ: the most at which the bands find every such pair."""
LIKENESS = 0.4
"""Of two texts, at least: what keeps apart texts in which few words are known as such."""
TELLING = frozenset(("or", "was", "were", "did", "will", "had", "或", "或者", "还是", "曾", "曾经"))
"""Words without a meaning of their own in `agree`, which all the same tell choice from sum and past
from present."""
LONGEST = 1_000
"""Characters of a question (reading that many takes about 2 ms). Of a longer one only an equal one
is found: what differs may be any small part of it."""
CANDIDATES = 4
"""Questions compared in one search, the nearest first."""
ENTRY_BYTES = 1_600
"""What a question takes beside its text, mostly its places in eight bands: measured with CPython
3.11, 680 where 3,000 questions share a partition, 1,530 where each has its own."""


class _Question(NamedTuple):
    partition: bytes
    key: bytes
    text: str
    mark: int
    until: float


class NearIndex:
    """The questions of one replica whose answers are kept. See `Questions`."""

    def __init__(
        self,
        max_bytes: int,
        clock: Callable[[], float],
        same: Callable[[Reading, Reading], bool] = agree,
    ) -> None:
        """`clock`: monotonic seconds; `same`: has the last word on two texts that are alike."""
        self._most = max_bytes
        self._clock = clock
        self._same = same
        self._held = 0
        self._questions: OrderedDict[bytes, _Question] = OrderedDict()
        self._bands: dict[tuple[bytes, int], list[bytes]] = {}

    def __len__(self) -> int:
        return len(self._questions)

    @property
    def held(self) -> int:
        """Bytes that all questions take."""
        return self._held

    async def find(self, partition: bytes, text: str) -> bytes | None:
        """See `Questions.find`."""
        read, mark = _read(text)
        if read is None:
            return None
        now = self._clock()
        for question in self._nearest(partition, mark):
            if question.until <= now:
                self.forget(partition, question.key)
                continue
            if likeness(text, question.text) < LIKENESS:
                continue
            other = reading(question.text)
            if _in_order(read, other) and self._same(read, other):
                self._questions.move_to_end(question.key)
                return question.key
        return None

    async def add(self, partition: bytes, text: str, key: bytes, ttl: float) -> None:
        """See `Questions.add`."""
        self.forget(partition, key)
        read, mark = _read(text)
        if read is None:
            return
        question = _Question(partition, key, text, mark, self._clock() + ttl)
        self._questions[key] = question
        for band in bands(mark):
            self._bands.setdefault((partition, band), []).append(key)
        self._held += _size(question)
        while self._held > self._most:
            oldest = next(iter(self._questions.values()))
            self.forget(oldest.partition, oldest.key)

    def forget(self, partition: bytes, key: bytes) -> None:
        """See `Questions.forget`."""
        question = self._questions.pop(key, None)
        if question is None:
            return
        self._held -= _size(question)
        for band in bands(question.mark):
            place = (question.partition, band)
            self._bands[place].remove(key)
            if not self._bands[place]:
                del self._bands[place]

    async def aclose(self) -> None:
        """See `Questions.aclose`: it does nothing by itself."""

    def _nearest(self, partition: bytes, mark: int) -> list[_Question]:
        """The questions within DISTANCE of `mark`, the nearest first."""
        keys = {key for band in bands(mark) for key in self._bands.get((partition, band), ())}
        found = sorted((distance(self._questions[key].mark, mark), key) for key in keys)
        return [self._questions[key] for bits, key in found[:CANDIDATES] if bits <= DISTANCE]


def _read(text: str) -> tuple[Reading | None, int]:
    """A question and its fingerprint; None for one that is not compared: too long, or without a
    word that has a meaning of its own."""
    read = reading(text) if len(text) <= LONGEST else None
    words = words_of(read) if read is not None else set()
    return (read, fingerprint(words)) if words else (None, 0)


def _in_order(one: Reading, other: Reading) -> bool:
    """Whether both say their words in one order. One may have words beyond the other's, but none
    of TELLING, and no sign (`=`, `+`, `<`)."""
    if _telling(one) != _telling(other):
        return False
    short, long = sorted((_meanings(one), _meanings(other)), key=len)
    rest = iter(long)
    return all(meaning in rest for meaning in short)


def _meanings(read: Reading) -> list[str]:
    return [word.meaning for word in read.said if word.meaning]


def _telling(read: Reading) -> list[str]:
    return [word.text for word in read.said if word.text in TELLING or _is_sign(word.text)]


def _is_sign(text: str) -> bool:
    return bool(text) and not any(map(str.isalnum, text))


def _size(question: _Question) -> int:
    return ENTRY_BYTES + 4 * len(question.text)
