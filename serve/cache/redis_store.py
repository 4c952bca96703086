"""Answers that all replicas share: `Store` over Redis, with a replica's own memory in front.

Invariant: Redis that is slow, gone or full costs hits, never an error: for so long each replica is
by itself, as it is without Redis, and what it kept or deleted then it hands on when Redis is back,
asked or not. Values are bytes, never pickles; what lies there and was not sealed by a replica of
this version is a miss, and deleted.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from serve.ask.redis_place import RedisPlace
from serve.cache.kept import WRITER, WRITER_BYTES, seal, unseal
from serve.cache.redis_link import (
    BUDGET_SECONDS,
    PAUSE_SECONDS,
    RedisAway,
    RedisLink,
    RedisRefused,
)
from serve.cache.store import MemoryStore

PREFIX = b"fupan:v1:cache:"
"""Of every key; the hash follows in hexadecimal."""
AHEAD_SECONDS = 2.0
"""For which a replica answers out of its own memory what Redis said: replicas differ no longer."""
OWED = 1_000
"""Keys that a replica remembers to hand on; the oldest of more are forgotten by the others."""
PAY_SECONDS = PAUSE_SECONDS
"""Between two tries to hand on what is owed."""
LARGEST_BYTES = 4 * 2**20
"""Of a value that is shared. A larger one would take most of a budget on the wire, which all that
waits behind it shares."""
_DELETE_OWN = b"""
if redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[2]) == ARGV[3] then
  return redis.call('DEL', KEYS[1])
end
return 0
"""
"""What this replica wrote: a mark that another one has set meanwhile stays."""


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
        self._writer = secrets.token_bytes(WRITER_BYTES)
        self._owed: OrderedDict[bytes, float | None] = OrderedDict()
        """Until when a value is kept; None: it is to be deleted."""
        self._paying: asyncio.Task[None] | None = None

    async def get(self, key: bytes) -> bytes | None:
        """See `Store.get`."""
        known = self._ahead.peek(key)
        if known is not None or self._owed.get(key, 0) is None:
            return known
        try:
            return await self._read(key)
        except RedisAway:
            return None

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
            self._owe(key, until)
        else:
            self._owed.pop(key, None)
            self._ahead.put(key, value, min(ttl, AHEAD_SECONDS))
        return True

    async def add(self, key: bytes, value: bytes, ttl: float) -> bool:
        """See `Store.add`; without Redis one of this replica alone gets it."""
        if self._ahead.peek(key) is not None:
            return False
        try:
            if self._owed.get(key, 0) is None:
                await self._delete_own(key)
                self._owed.pop(key, None)
            done = await self._write(key, value, ttl, b"NX")
            if not done and await self._read(key) is None:
                # What was there is over, or was nothing of ours.
                done = await self._write(key, value, ttl, b"NX")
        except RedisAway:
            return await self._ahead.add(key, value, ttl)
        if done:
            self._ahead.put(key, value, min(ttl, AHEAD_SECONDS))
        return done

    async def delete(self, key: bytes) -> None:
        """See `Store.delete`; without Redis as soon as it is back, if it is what this replica
        wrote."""
        self._owed.pop(key, None)
        await self._ahead.delete(key)
        try:
            await self._link.do(b"DEL", _name(key))
        except RedisAway:
            self._owe(key, None)

    async def aclose(self) -> None:
        """See `Store.aclose`."""
        if self._paying is not None:
            self._paying.cancel()
            await asyncio.wait([self._paying])
        await self._link.aclose()
        await self._ahead.aclose()

    def _owe(self, key: bytes, until: float | None) -> None:
        self._owed.pop(key, None)
        self._owed[key] = until
        if len(self._owed) > OWED:
            self._owed.popitem(last=False)
        if self._paying is None:
            self._paying = asyncio.create_task(self._pay())

    async def _pay(self) -> None:
        """Hand on what Redis does not know yet, the latest first."""
        try:
            while self._owed:
                await asyncio.sleep(PAY_SECONDS)
                while self._owed and await self._pay_one(next(reversed(self._owed))):
                    pass
        finally:
            self._paying = None

    async def _pay_one(self, key: bytes) -> bool:
        """Whether Redis took it, or there is nothing to hand on any more."""
        until = self._owed[key]
        try:
            if until is None:
                await self._delete_own(key)
            elif (value := self._ahead.peek(key)) is not None:
                await self._write(key, value, max(until - self._clock(), 0))
        except RedisRefused:
            # Full: it may take a value later. What it does not delete goes when its time is over.
            if until is not None:
                return False
        except RedisAway:
            return False
        if key in self._owed and self._owed[key] == until:
            del self._owed[key]
        return True

    async def _read(self, key: bytes) -> bytes | None:
        try:
            found: Any = await self._link.do(b"GET", _name(key))
        except RedisRefused:
            # Another type of value, as a rule.
            await self._link.do(b"DEL", _name(key))
            return None
        if found is None:
            return None
        if not isinstance(found, bytes):
            raise RedisAway
        value = unseal(key, found)
        if value is None:
            await self._link.do(b"DEL", _name(key))
            return None
        self._ahead.put(key, value, AHEAD_SECONDS)
        return value

    async def _write(self, key: bytes, value: bytes, ttl: float, *how: bytes) -> bool:
        milliseconds = max(1, math.ceil(ttl * 1000))
        sealed = seal(key, value, self._writer)
        reply = await self._link.do(b"SET", _name(key), sealed, b"PX", milliseconds, *how)
        if reply not in (b"OK", None):
            raise RedisAway
        return reply is not None

    async def _delete_own(self, key: bytes) -> None:
        place = (WRITER.start, WRITER.stop - 1)
        await self._link.do(b"EVAL", _DELETE_OWN, 1, _name(key), *place, self._writer)


def _name(key: bytes) -> bytes:
    return PREFIX + key.hex().encode()
