"""The vectors of texts: kept ones, those that are being computed for somebody else, and new ones.

Invariant: equal texts are computed once at a time, whoever asks; a text that nobody waits for any
more is not begun; each vector that was computed is kept at once, whatever becomes of the request;
what is kept is found for a day, each text's a little longer or shorter, and takes no more memory
than it may.
"""

from __future__ import annotations

import asyncio
import hashlib
import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serve.batcher import Batcher, Work
from serve.cache.store import MemoryStore

KEPT_SECONDS: Final = 24 * 3600.0
JITTER: Final = 0.1
"""Of that, so that what came at one moment does not leave at one moment."""
_HEAD = struct.Struct("<I")


class Found(NamedTuple):
    """Of a text: its tokens, those that are not read included, and its vector."""

    tokens: int
    vector: NDArray[np.float32]


class Measured(NamedTuple):
    """A text with its tokens; `read`: those of them that the model reads."""

    text: str
    tokens: int
    read: int


TextWork = Work[str, NDArray[np.float32]]


@dataclass
class _Flight:
    """A text that is being computed, and by how many requests it is waited for."""

    work: TextWork
    waited: int


class VectorCache:
    """Vectors by text, in memory."""

    def __init__(self, store: MemoryStore, most: int) -> None:
        """`most`: bytes that `store` holds at most."""
        self._store = store
        self._most = most

    @property
    def use(self) -> float:
        """The share of its memory that is in use."""
        return self._store.held / self._most

    def get(self, key: bytes) -> Found | None:
        """What is kept of the text with this key."""
        kept = self._store.peek(key)
        if kept is None:
            return None
        (tokens,) = _HEAD.unpack_from(kept)
        return Found(tokens, np.frombuffer(kept, dtype=np.float32, offset=_HEAD.size))

    def put(self, key: bytes, found: Found) -> None:
        """Keep it."""
        share = int.from_bytes(key[:4], "big") / 0xFFFFFFFF
        seconds = KEPT_SECONDS * (1 + JITTER * (2 * share - 1))
        self._store.put(key, _HEAD.pack(found.tokens) + found.vector.tobytes(), seconds)


def key_of(text: str) -> bytes:
    """Of a clean text."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


class Flights:
    """Texts that are being computed. Belongs to one loop."""

    def __init__(self, batcher: Batcher[str, NDArray[np.float32]], cache: VectorCache) -> None:
        self._batcher = batcher
        self._cache = cache
        self._flying: dict[bytes, _Flight] = {}
        self._boarded: dict[int, Sequence[TextWork]] = {}

    def requests(self) -> int:
        """Requests whose texts are being computed, or wait."""
        return len(self._boarded)

    def waiting(self) -> int:
        """Those of them of whose texts one at least waits."""
        return sum(any(not work.begun for work in works) for works in self._boarded.values())

    async def vectors(
        self, wanted: Mapping[bytes, Measured], until: float
    ) -> Mapping[bytes, Found]:
        """The vectors of texts by their keys, by `until` (the loop's clock). Raises what the
        batcher says of the first that has none."""
        # What is kept since the request was looked up was computed for somebody else.
        found = {key: kept for key in wanted if (kept := self._cache.get(key)) is not None}
        missing = {key: each for key, each in wanted.items() if key not in found}
        async with self._board(missing, until) as works:
            vectors = await asyncio.gather(*map(asyncio.shield, (w.done for w in works)))
        for (key, measured), vector in zip(missing.items(), vectors, strict=True):
            found[key] = Found(measured.tokens, vector)
        return found

    @asynccontextmanager
    async def _board(
        self, wanted: Mapping[bytes, Measured], until: float
    ) -> AsyncIterator[Sequence[TextWork]]:
        """The works of `wanted`; those that nobody waits for at the end are withdrawn. What has
        begun then goes on: whoever asks for it meanwhile shares it."""
        new: dict[bytes, _Flight] = {}
        flights: dict[bytes, _Flight] = {}
        for key, measured in wanted.items():
            flight = self._flying.get(key)
            if flight is None or _failed(flight.work):
                flight = _Flight(Work(measured.text, measured.read, until), 0)
                new[key] = flight
            flight.work.until = max(flight.work.until, until)
            flights[key] = flight
        self._batcher.add(flight.work for flight in new.values())
        for key, flight in new.items():
            flight.work.done.add_done_callback(partial(self._landed, key, wanted[key], flight))
        for key, flight in flights.items():
            flight.waited += 1
            self._flying[key] = flight
        works = [flight.work for flight in flights.values()]
        self._boarded[id(works)] = works
        try:
            yield works
        finally:
            del self._boarded[id(works)]
            for flight in flights.values():
                flight.waited -= 1
                if not flight.waited:
                    self._batcher.withdraw(flight.work)

    def _landed(
        self, key: bytes, measured: Measured, flight: _Flight, done: asyncio.Future[Any]
    ) -> None:
        """The work of `flight` has come to its end."""
        if self._flying.get(key) is flight:
            del self._flying[key]
        if not _failed(flight.work):
            self._cache.put(key, Found(measured.tokens, done.result()))


def _failed(work: TextWork) -> bool:
    return work.done.done() and (work.done.cancelled() or work.done.exception() is not None)
