"""What a user can ask of a store of answers in Redis: what `answers_upkeep` does for a file.

Invariant: some hundred bytes of memory an answer, never the answers themselves; nobody who stores
meanwhile waits longer than a fraction of a second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from redis import Redis

from serve.ask.answers import whole_seconds
from serve.ask.answers_redis import RedisAnswers, StoreRefused
from serve.ask.answers_redis_layout import (
    AGES,
    ANSWER,
    AT_ONCE,
    LEARNED,
    VERSION,
    entry_of,
    get_with_ages,
    key_of,
    moment_of,
)
from serve.ask.answers_upkeep import Contents, Forgotten, Lasting, exported, model_of


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer with its key (hexadecimal) and when it was stored, seconds since the epoch, also as
    Redis has it."""

    key: str
    value: bytes
    at: int
    score: float


def contents(answers: RedisAnswers) -> Contents:
    """What the store holds; reads all of it once. Its size is that of keys and values."""
    models: Counter[str | None] = Counter()
    oldest: int | None = None
    newest: int | None = None
    size = 0
    for kept in _every(answers):
        models[model_of(kept.value)] += 1
        size += len(ANSWER) + len(kept.key) + len(kept.value)
        oldest = kept.at if oldest is None else min(oldest, kept.at)
        newest = kept.at if newest is None else max(newest, kept.at)
    learned: dict[str, tuple[int, int]] = {}
    for name, found in sorted(_learned(answers).items()):
        at, value = entry_of(found)
        learned[name.decode()] = len(value), at
        size += len(name) + len(found)
    order = sorted(models.items(), key=lambda pair: (-pair[1], pair[0] or ""))
    return Contents(
        answers.at,
        VERSION,
        size,
        models.total(),
        dict(order),
        oldest,
        newest,
        learned,
        [],
        lasting(answers),
    )


def lasting(answers: RedisAnswers) -> Lasting | None:
    """What Redis does to keep what it holds; None where it does not say."""
    try:
        found: dict[str, Any] = answers.do(_info)
    except StoreRefused:
        return None
    return Lasting(bool(found.get("aof_enabled")), str(found.get("maxmemory_policy", "")))


def forget(
    answers: RedisAnswers, before: float | None, model: str | None, dry_run: bool = False
) -> Forgotten:
    """See `answers_upkeep.forget`; Redis gives memory back by itself, and does not say how much."""
    limit = 2**62 if before is None else whole_seconds(before)
    old = sum(entry_of(found)[0] < limit for found in _learned(answers).values())
    if model is None and not dry_run:
        pruned = answers.prune(limit)
        return Forgotten(*pruned, None)
    gone = 0
    batch: list[tuple[bytes | str, float]] = []
    for kept in _every(answers):
        if kept.at < limit and model in (None, model_of(kept.value)):
            batch.append((kept.key, kept.score))
        if len(batch) == AT_ONCE:
            gone += len(batch) if dry_run else answers.forget(batch)
            batch = []
    if batch:
        gone += len(batch) if dry_run else answers.forget(batch)
    return Forgotten(gone, old if model is None else 0, None)


def export(answers: RedisAnswers) -> Iterator[bytes]:
    """See `answers_upkeep.export`; an answer that is forgotten meanwhile is left out."""
    for kept in _every(answers):
        moment = f"{datetime.fromtimestamp(kept.at, UTC):%Y-%m-%dT%H:%M:%SZ}"
        yield exported(kept.key, moment, kept.value)


def _every(answers: RedisAnswers) -> Iterator[_Kept]:
    """Every answer, in the order of the keys, as they are at the beginning."""
    keys = sorted({key_of(member) for member in answers.do(_members)})
    for start in range(0, len(keys), AT_ONCE):
        some = [key.hex() for key in keys[start : start + AT_ONCE]]
        values, ages = answers.do(partial(get_with_ages, keys=some))
        for key, value, age in zip(some, values, ages, strict=True):
            if value is not None:
                yield _Kept(key, value, moment_of(age), age or 0)


def _members(redis: Redis) -> list[bytes]:
    return [member for member, _ in redis.zscan_iter(AGES, count=AT_ONCE)]


def _learned(answers: RedisAnswers) -> dict[bytes, bytes]:
    found: Any = answers.do(lambda redis: redis.hgetall(LEARNED))
    return dict(found)


def _info(redis: Redis) -> dict[str, Any]:
    persistence: Any = redis.info("persistence")
    memory: Any = redis.info("memory")
    return {**persistence, **memory}
