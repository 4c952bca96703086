"""Answers that all replicas share: `Store` over Redis, with a replica's own memory in front.

Invariant: Redis that is slow, gone or full costs hits, never an error: for so long each replica is
by itself, as it is without Redis. Values are bytes, never pickles.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from serve.ask.redis_place import RedisPlace
from serve.cache.redis_link import RedisAway, RedisLink
from serve.cache.store import MemoryStore

PREFIX = b"fupan:v1:cache:"
"""Of every key; the hash follows in hexadecimal."""
AHEAD_SECONDS = 5.0
"""For which a replica answers out of its own memory what Redis said: replicas differ no longer."""
LARGEST_BYTES = 4 * 2**20
"""Of a value that is shared. A larger one would take most of a budget on the wire, which all that
waits behind it shares."""


class RedisStore:
    """`Store` in a Redis. Belongs to the loop it is used on."""

    def __init__(
        self, url: str, ahead: MemoryStore, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`ahead`: this replica's own memory. Nothing is connected yet. Raises ValueError for what
        is no URL of a Redis; its words hold nothing of the URL."""
        self._ahead = ahead
        self._link = RedisLink(RedisPlace.of(url), clock)

    async def get(self, key: bytes) -> bytes | None:
        """See `Store.get`."""
        known = self._ahead.peek(key)
        if known is not None:
            return known
        try:
            found: bytes | None = await self._link.do(b"GET", _name(key))
        except RedisAway:
            return None
        if found is not None:
            self._ahead.put(key, found, AHEAD_SECONDS)
        return found

    async def set(self, key: bytes, value: bytes, ttl: float) -> None:
        """See `Store.set`. What Redis does not take, this replica keeps for as long."""
        if ttl <= 0:
            return
        if len(value) > LARGEST_BYTES:
            # What others read there is over all the same.
            await self.delete(key)
            self._ahead.put(key, value, ttl)
            return
        try:
            await self._write(key, value, ttl)
        except RedisAway:
            self._ahead.put(key, value, ttl)
        else:
            self._ahead.put(key, value, min(ttl, AHEAD_SECONDS))

    async def add(self, key: bytes, value: bytes, ttl: float) -> bool:
        """See `Store.add`; without Redis one of this replica alone gets it."""
        if self._ahead.peek(key) is not None:
            return False
        try:
            done = await self._write(key, value, ttl, b"NX")
        except RedisAway:
            return await self._ahead.add(key, value, ttl)
        if done:
            self._ahead.put(key, value, min(ttl, AHEAD_SECONDS))
        return done

    async def delete(self, key: bytes) -> None:
        """See `Store.delete`; without Redis what it holds stays for its time."""
        await self._ahead.delete(key)
        try:
            await self._link.do(b"DEL", _name(key))
        except RedisAway:
            return

    async def aclose(self) -> None:
        """See `Store.aclose`."""
        await self._link.aclose()
        await self._ahead.aclose()

    async def _write(self, key: bytes, value: bytes, ttl: float, *how: bytes) -> bool:
        milliseconds = max(1, math.ceil(ttl * 1000))
        reply = await self._link.do(b"SET", _name(key), value, b"PX", milliseconds, *how)
        return reply is not None


def _name(key: bytes) -> bytes:
    return PREFIX + key.hex().encode()
