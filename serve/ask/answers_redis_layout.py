"""How answers lie in a Redis, and the calls that keep them so.

Invariant: each function is one call, or one transaction, that may be repeated: nobody finds an
answer without its age or the other way round. A single Redis, 6.2 or later: keys of one call lie
together.

    fupan:answers             what this is: application and version
    fupan:v1:answer:<hex>     one answer, as bytes; goes by itself where answers are kept for a time
    fupan:v1:ages             key (hexadecimal) -> when it was stored, seconds since the epoch
    fupan:v1:learned          name -> when it was kept, a space, the bytes

What others wrote there is left as it is, and told by its key where it cannot be understood.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from redis import Redis
from redis.client import Pipeline
from redis.exceptions import ResponseError

from serve.ask.answers_file import ForeignFile, NewerStore

APPLICATION = "fupan"
VERSION = 1
"""Of how answers are kept in Redis."""
META = "fupan:answers"
ANSWER, AGES, LEARNED = (f"fupan:v{VERSION}:{name}" for name in ("answer:", "ages", "learned"))
AT_ONCE = 500
"""Answers in one call: some milliseconds in which Redis serves nobody else."""
_PUT = """
local now, keep, anew = ARGV[1], ARGV[2], ARGV[3] == '1'
redis.call('SET', KEYS[1], ARGV[4], 'NX')
for i = 5, #ARGV, 2 do
  local name, how = KEYS[3] .. ARGV[i], {}
  if not anew then table.insert(how, 'NX') end
  if keep ~= '0' then table.insert(how, 'EX') table.insert(how, keep) end
  if redis.call('SET', name, ARGV[i + 1], unpack(how)) then
    redis.call('ZADD', KEYS[2], now, ARGV[i])
  end
end
"""
"""An answer and its age together: one alone would be forgotten too soon, or never."""
_FORGET = """
local gone = 0
for i = 1, #ARGV, 2 do
  if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[i])) == tonumber(ARGV[i + 1]) then
    gone = gone + redis.call('DEL', KEYS[2] .. ARGV[i])
    redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
return gone
"""
"""Answers by key and age: one that was stored anew meanwhile stays."""
LAST_MOMENT = 253_402_300_799
"""The end of the year 9999, seconds since the epoch: no answer was stored later."""
META_BYTES = orjson.dumps({"application": APPLICATION, "version": VERSION})


def entry_of(found: bytes) -> tuple[int, bytes]:
    """When something was kept, and its bytes, of an entry of `LEARNED`. Raises ForeignFile."""
    at, _, value = found.partition(b" ")
    try:
        return moment_of(int(at), LEARNED), value
    except ValueError:
        raise _foreign(LEARNED, f"holds {found[:20]!r}") from None


def moment_of(score: float | None, key: str = AGES) -> int:
    """The second of a moment that lies under `key`; 0 for None. Raises ForeignFile."""
    if score is None:
        return 0
    if not 0 <= score <= LAST_MOMENT:
        raise _foreign(key, f"holds {score!r} as a time")
    return int(score)


def key_of(member: bytes) -> bytes:
    """The key of an answer, of an entry of `AGES`. Raises ForeignFile."""
    try:
        key = bytes.fromhex(member.decode())
    except ValueError:
        key = b""
    if key.hex().encode() != member or not key:
        raise _foreign(AGES, f"holds {member[:20]!r} as a key")
    return key


def check(redis: Redis) -> None:
    """Raise StoreError where another program, or a newer version, keeps something there."""
    try:
        with redis.pipeline() as pipeline:
            pipeline.type(AGES)
            pipeline.type(LEARNED)
            pipeline.get(META)
            ages, learned, found = pipeline.execute()
        about: Any = {"application": APPLICATION, "version": VERSION}
        if found is not None:
            about = orjson.loads(found)
        version, ours = int(about["version"]), about["application"] == APPLICATION
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, ResponseError) as error:
        if isinstance(error, ResponseError) and "WRONGTYPE" not in str(error):
            raise
        raise ForeignFile(f"{META} is not ours there") from None
    if not ours:
        raise ForeignFile(f"{META} is not ours there")
    if version != VERSION:
        raise NewerStore(f"it has version {version}; this program knows {VERSION}")
    for key, kind, right in ((AGES, ages, b"zset"), (LEARNED, learned, b"hash")):
        if kind not in (right, b"none"):
            raise _foreign(key, f"is a {kind.decode()}")


def _foreign(key: str, what: str) -> ForeignFile:
    return ForeignFile(f"{key} {what}, which fupan never wrote: delete it there")


def get_with_ages(
    redis: Redis, keys: Sequence[str]
) -> tuple[list[bytes | None], list[float | None]]:
    """Answers by key (hexadecimal), and when each was stored."""
    with redis.pipeline() as pipeline:
        pipeline.mget([ANSWER + key for key in keys])
        pipeline.zmscore(AGES, list(keys))
        values, ages = pipeline.execute()
    return values, ages


def put(
    redis: Redis, items: Sequence[tuple[bytes, bytes]], now: int, keep: int | None, replace: bool
) -> None:
    """Store answers by key at `now`, for `keep` seconds (None: for good)."""
    rows = [each for key, value in items for each in (key.hex(), value)]
    redis.eval(_PUT, 3, META, AGES, ANSWER, now, keep or 0, int(replace), META_BYTES, *rows)


def forget(redis: Redis, some: Sequence[tuple[bytes | str, float]]) -> int:
    """Forget answers by key (hexadecimal) and age, unless they were stored anew; how many. Of those
    that are gone already the ages are forgotten."""
    rows = [each for pair in some for each in pair]
    gone: Any = redis.eval(_FORGET, 2, AGES, ANSWER, *rows)
    return int(gone)


def keep_learned(redis: Redis, name: str, value: bytes, now: int) -> None:
    """Keep `value` under `name`."""
    with redis.pipeline() as pipeline:
        pipeline.set(META, META_BYTES, nx=True)
        pipeline.hset(LEARNED, name, b"%d %b" % (now, value))
        pipeline.execute()


def older(redis: Redis, limit: int) -> list[tuple[bytes, float]]:
    """Some of the answers stored before `limit`, by key and age as Redis has them."""
    found: Any = redis.zrangebyscore(AGES, "-inf", f"({limit}", 0, AT_ONCE, withscores=True)
    return list(found)


def forget_learned(redis: Redis, limit: int) -> int:
    """Forget what was learned before `limit`, and not kept again meanwhile; how much."""
    old: list[bytes] = []

    def forget_old(pipeline: Pipeline) -> None:
        held: Any = pipeline.hgetall(LEARNED)
        old[:] = [name for name, found in held.items() if entry_of(found)[0] < limit]
        pipeline.multi()
        if old:
            pipeline.hdel(LEARNED, *old)

    redis.transaction(forget_old, LEARNED)
    return len(old)
