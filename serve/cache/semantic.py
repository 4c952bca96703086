"""Questions that mean the same in other words: found by the vectors of an embedding model, then
compared themselves.

Invariant: what is found is above the threshold of its language for the model and has the same
meaning (`serve.cache.agree.meaning`); a question that is equal is preferred. Nothing is found in
another partition, or after its answer's time. At most `max_entries` questions are held; what was
not found for longest leaves first.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from itertools import count
from typing import NamedTuple

from serve.cache.agree import meaning
from serve.cache.nearest import Nearest, Vector
from serve.cache.thresholds import Language, language_of
from serve.cache.vectors import Embed, QuestionVectors

LONGEST = 500
"""Characters of a question: models see no more than 512 tokens, and what they say of long texts is
little about the one word that differs."""
CANDIDATES = 8
"""Questions compared in one search, the nearest first."""
ENTRY_BYTES = 5_000
"""What a question takes at most with its text: measured, 4,700 alone in its partition, 3,200 in a
graph."""


class _Question(NamedTuple):
    partition: bytes
    key: bytes
    text: str
    asked: bytes
    number: int
    until: float


class SemanticIndex:
    """The questions of one replica whose answers are kept. See `serve.cache.caches.Questions`."""

    def __init__(
        self,
        embed: Embed,
        thresholds: Mapping[Language, float],
        max_entries: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`embed`: texts to rows of length 1, called in a thread; `thresholds`: least cosine by
        language, nothing is found in a language without one; `clock`: monotonic seconds."""
        self._vectors = QuestionVectors(embed)
        self._thresholds = thresholds
        self._most = max_entries
        self._clock = clock
        self._questions: OrderedDict[bytes, _Question] = OrderedDict()
        self._numbered: dict[int, _Question] = {}
        self._partitions: dict[bytes, Nearest] = {}
        self._numbers = count()
        self._adding: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._questions)

    async def find(self, partition: bytes, text: str) -> bytes | None:
        """See `Questions.find`."""
        threshold = self._threshold(text)
        if threshold is None or partition not in self._partitions:
            return None
        vector = await self._vectors.of(text)
        nearest = self._partitions.get(partition)
        if vector is None or nearest is None:
            return None
        now = self._clock()
        asked, found = meaning(text).digest(), None
        for number, cosine in nearest.search(vector, CANDIDATES):
            if cosine < threshold:
                break
            question = self._numbered[number]
            if question.until <= now:
                self.forget(partition, question.key)
            elif question.text == text or (found is None and question.asked == asked):
                found = question.key
                if question.text == text:
                    break
        if found is not None:
            self._questions.move_to_end(found)
        return found

    async def add(self, partition: bytes, text: str, key: bytes, ttl: float) -> None:
        """See `Questions.add`. The answer does not wait for the model: what it has not seen yet is
        added once it has (`settled`)."""
        if self._threshold(text) is None:
            return
        question = _Question(
            partition, key, text, meaning(text).digest(), next(self._numbers), self._clock() + ttl
        )
        vector = self._vectors.known(text)
        if vector is not None:
            self._hold(question, vector)
        elif self._vectors.has_room:
            task = asyncio.create_task(self._add_later(question))
            self._adding.add(task)
            task.add_done_callback(self._adding.discard)

    async def settled(self) -> None:
        """Wait until all that was added is held, or was left out because the model failed."""
        while self._adding:
            await asyncio.gather(*self._adding)

    async def _add_later(self, question: _Question) -> None:
        vector = await self._vectors.of(question.text)
        if vector is not None:
            self._hold(question, vector)

    def _hold(self, question: _Question, vector: Vector) -> None:
        self.forget(question.partition, question.key)
        self._questions[question.key] = question
        self._numbered[question.number] = question
        self._partitions.setdefault(question.partition, Nearest()).add(question.number, vector)
        while len(self._questions) > self._most:
            oldest = next(iter(self._questions.values()))
            self.forget(oldest.partition, oldest.key)

    def forget(self, partition: bytes, key: bytes) -> None:
        """See `Questions.forget`."""
        question = self._questions.pop(key, None)
        if question is None:
            return
        del self._numbered[question.number]
        nearest = self._partitions[question.partition]
        nearest.remove(question.number)
        if not len(nearest):
            del self._partitions[question.partition]

    async def aclose(self) -> None:
        """End the thread of the model, and what waits for it."""
        await self._vectors.aclose()

    def _threshold(self, text: str) -> float | None:
        if len(text) > LONGEST:
            return None
        language = language_of(text)
        return self._thresholds.get(language) if language else None
