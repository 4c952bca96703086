"""Where answers are kept: key -> bytes, for a time.

Invariant: a store never raises for what it cannot keep or find, it only forgets; `MemoryStore`
never holds more than `max_bytes`, counted with what an entry itself takes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

ENTRY_BYTES = 250
"""What one entry takes beside its key and value: its place in the table, the tuple, the deadline
and two object headers (measured with CPython 3.11, 20,000 entries: 220)."""
LARGEST_SHARE = 8
"""An entry larger than this part of the store is not kept: it would push out too many others."""


class Store(Protocol):
    """Key -> bytes, each for its own time. What is kept may be forgotten sooner."""

    async def get(self, key: bytes) -> bytes | None:
        """What is kept under `key`, None if nothing is."""

    async def set(self, key: bytes, value: bytes, ttl: float) -> bool:
        """Keep `value` for `ttl` seconds, instead of what was there. False: it is too large for
        all who share the store to find it."""

    async def add(self, key: bytes, value: bytes, ttl: float) -> bool:
        """Keep `value` only where nothing is kept under `key`; False: something is. True promises
        that of several who add the same key at once, one alone gets it."""

    async def delete(self, key: bytes) -> None:
        """Forget `key`."""

    async def aclose(self) -> None:
        """Let go of connections; nothing may be asked after that."""


class MemoryStore:
    """A store in this process: what was not used for longest leaves first."""

    def __init__(self, max_bytes: int, clock: Callable[[], float]) -> None:
        """`max_bytes` for all entries together; `clock`: monotonic seconds."""
        self._max = max_bytes
        self._clock = clock
        self._held = 0
        self._entries: OrderedDict[bytes, tuple[bytes, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def held(self) -> int:
        """Bytes that all entries take."""
        return self._held

    async def get(self, key: bytes) -> bytes | None:
        """What is kept under `key`, None if nothing is or its time is over."""
        return self.peek(key)

    def peek(self, key: bytes) -> bytes | None:
        """`get`, for who need not wait."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        value, until = entry
        if until <= self._clock():
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return value

    async def set(self, key: bytes, value: bytes, ttl: float) -> bool:
        """Keep `value` for `ttl` seconds; not at all where it is larger than an eighth of the
        store."""
        return self.put(key, value, ttl)

    def put(self, key: bytes, value: bytes, ttl: float) -> bool:
        """`set`, for who need not wait."""
        self._drop(key)
        size = len(key) + len(value) + ENTRY_BYTES
        if size * LARGEST_SHARE > self._max:
            return False
        if ttl <= 0:
            return True
        self._entries[key] = (value, self._clock() + ttl)
        self._held += size
        while self._held > self._max:
            self._drop(next(iter(self._entries)))
        return True

    async def add(self, key: bytes, value: bytes, ttl: float) -> bool:
        """Keep `value` only where nothing is kept under `key`; False: something is."""
        if self.peek(key) is not None:
            return False
        self.put(key, value, ttl)
        return True

    async def delete(self, key: bytes) -> None:
        """Forget `key`."""
        self._drop(key)

    async def aclose(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._held = 0

    def _drop(self, key: bytes) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._held -= len(key) + len(entry[0]) + ENTRY_BYTES
