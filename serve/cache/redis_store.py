"""Answers that all replicas share: `Store` over Redis, with a replica's own memory in front.

Invariant: Redis that is slow, gone or full costs hits, never an error: for so long each replica is
by itself, as it is without Redis, and what it kept then it hands on when Redis is back. Values are
bytes, never pickles.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable

from serve.ask.redis_place import RedisPlace
from serve.cache.redis_link import BUDGET_SECONDS, RedisAway, RedisLink
from serve.cache.store import MemoryStore

PREFIX = b"fupan:v1:cache:"
"""Of every key; the hash follows in hexadecimal."""
AHEAD_SECONDS = 2.0
"""For which a replica answers out of its own memory what Redis said: replicas differ no longer."""
OWED = 1_000
"""Keys that a replica remembers to hand on; the oldest of more are forgotten by the others."""
LARGEST_BYTES = 4 * 2**20
"""Of a value that is shared. A larger one would take most of a budget on the wire, which all that
waits behind it shares."""


class RedisStore:
    """`Store` in a Redis. Belongs to the loop it is used on."""

    def __init__(
        self,
        url: str,
        ahead: MemoryStore,
        budget: float = BUDGET_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`ahead`: this replica's own memory; `budget`: see `redis_link`. Nothing is connected yet.
        Raises ValueError for what is no URL of a Redis; its words hold nothing of the URL."""
        self._ahead = ahead
        self._clock = clock
        self._link = RedisLink(RedisPlace.of(url), budget, clock)
        self._owed: OrderedDict[bytes, float] = OrderedDict()
        self._paying: asyncio.Task[None] | None = None

    async def get(self, key: bytes) -> bytes | None:
        """See `Store.get`."""
        known = self._ahead.peek(key)
        if known is not None:
            return known
        try:
            found: bytes | None = await self._link.do(b"GET", _name(key))
        except RedisAway:
            return None
        self._hand_on()
        if found is not None:
            self._ahead.put(key, found, AHEAD_SECONDS)
        return found

    async def set(self, key: bytes, value: bytes, ttl: float) -> bool:
        """See `Store.set`. What Redis does not take, this replica keeps for as long."""
        if ttl <= 0:
            return True
        if len(value) > LARGEST_BYTES:
            # What others read there is over all the same.
            await self.delete(key)
            self._ahead.put(key, value, ttl)
            return False
        until = self._clock() + ttl
        try:
            await self._write(key, value, ttl)
        except RedisAway:
            self._ahead.put(key, value, ttl)
            self._owed[key] = until
            if len(self._owed) > OWED:
                self._owed.popitem(last=False)
        else:
            self._owed.pop(key, None)
            self._ahead.put(key, value, min(ttl, AHEAD_SECONDS))
        return True

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
        self._owed.pop(key, None)
        await self._ahead.delete(key)
        try:
            await self._link.do(b"DEL", _name(key))
        except RedisAway:
            return

    async def aclose(self) -> None:
        """See `Store.aclose`."""
        if self._paying is not None:
            self._paying.cancel()
            await asyncio.wait([self._paying])
        await self._link.aclose()
        await self._ahead.aclose()

    def _hand_on(self) -> None:
        """Redis answers: hand on what it does not know yet."""
        if self._owed and self._paying is None:
            self._paying = asyncio.create_task(self._pay())

    async def _pay(self) -> None:
        try:
            while self._owed:
                key, until = self._owed.popitem()
                value, left = self._ahead.peek(key), until - self._clock()
                if value is not None and left > 0:
                    await self.set(key, value, left)
                    if key in self._owed:
                        return
        finally:
            self._paying = None

    async def _write(self, key: bytes, value: bytes, ttl: float, *how: bytes) -> bool:
        milliseconds = max(1, math.ceil(ttl * 1000))
        reply = await self._link.do(b"SET", _name(key), value, b"PX", milliseconds, *how)
        return reply is not None


def _name(key: bytes) -> bytes:
    return PREFIX + key.hex().encode()
