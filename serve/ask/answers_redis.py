"""The store of answers in a Redis that the machines of a cluster share.

Invariant: `put_many` returns only when Redis has the answers (how safe they are there is Redis's
own setting: see docs/answers.md), and a stored answer is never changed: the first one stays. A
Redis that is gone is waited for, but not for ever, and nothing is sent twice to different effect:
each call may be repeated.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Any, Self, TypeVar

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    RedisError,
)
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import TimeoutError as TimedOut
from redis.retry import Retry

from serve.ask.answers import Pruned, whole_seconds
from serve.ask.answers_file import StoreError
from serve.ask.answers_redis_layout import (
    AT_ONCE,
    LEARNED,
    META,
    check,
    entry_of,
    forget,
    forget_learned,
    get_with_ages,
    keep_learned,
    older,
    put,
)
from serve.ask.answers_repair import Damage
from serve.ask.redis_place import RedisPlace
from serve.ask.uris import without_secrets

PASSWORD = "FUPAN_REDIS_PASSWORD"  # noqa: S105
"""The environment variable of the password. Each process reads it from its own environment."""
PATIENCE_SECONDS = 30.0
"""For a Redis that is gone: a restart that reads a large file back takes a part of it."""
FIRST_SECONDS = 5.0
"""For one that was never there: its name is wrong, or it is down."""
REPLY_SECONDS = 10.0
"""For one reply."""
PAUSES = (0.05, 1.0)
"""Between two tries: at first, and at most; doubling."""

_T = TypeVar("_T")


class StoreAway(StoreError):
    """Redis does not answer, or not in time."""


class StoreRefused(StoreError):
    """Redis answers, and will not: a wrong password, no memory left, a replica."""


@dataclass(frozen=True, slots=True)
class AnswersInRedis:
    """A store of answers in a Redis, as a value that holds no password. `keep`: seconds for which
    answers stay, None: for good."""

    place: RedisPlace
    keep: int | None = None

    def __str__(self) -> str:
        return str(self.place)


class RedisAnswers:
    """One open store: what `LastingAnswers` is for a file. Use it from one thread."""

    def __init__(
        self,
        at: AnswersInRedis,
        patience: float = PATIENCE_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Nothing is connected yet. `patience`: seconds for which a Redis that is gone is waited
        for; `clock`: seconds since the epoch."""
        self.at = at
        self._patience = patience
        self._clock = clock
        self._checked = False
        self._away_since: float | None = None
        self.redis = _client(at.place)
        """For `answers_redis_upkeep` alone, by `do`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; what was put is kept."""
        self.redis.close()

    def check(self) -> bool:
        """See that the store is there and is ours, and whether anything was kept in it yet; it
        waits `FIRST_SECONDS` for it. Raises StoreError."""
        return self.do(lambda redis: redis.get(META), FIRST_SECONDS) is not None

    def get_many(self, keys: Sequence[bytes], since: float | None = None) -> dict[bytes, bytes]:
        """See `Answers.get_many`."""
        found: dict[bytes, bytes] = {}
        for some in _parts(keys):
            values, ages = self.do(partial(get_with_ages, keys=[key.hex() for key in some]))
            for key, value, age in zip(some, values, ages, strict=True):
                if value is not None and (since is None or (age or 0) >= int(since)):
                    found[key] = value
        return found

    def put_many(self, items: Iterable[tuple[bytes, bytes]], replace: bool = False) -> None:
        """See `Answers.put_many`; in calls of `AT_ONCE`, each of them whole or not at all."""
        now, keep = int(self._clock()), self.at.keep
        for some in _parts(items):
            self.do(partial(put, items=some, now=now, keep=keep, replace=replace))

    def learned(self, name: str, since: float | None = None) -> bytes | None:
        """See `Answers.learned`."""
        found: Any = self.do(lambda redis: redis.hget(LEARNED, name))
        if found is None:
            return None
        at, value = entry_of(found)
        return value if at >= whole_seconds(since or 0.0) else None

    def keep_learned(self, name: str, value: bytes) -> None:
        """See `Answers.keep_learned`."""
        now = int(self._clock())
        self.do(lambda redis: keep_learned(redis, name, value, now))

    def prune(self, before: float) -> Pruned:
        """See `Answers.prune`."""
        limit, answers = whole_seconds(before), 0
        last: list[tuple[bytes, float]] = []
        # What cannot be forgotten would come again and again.
        while (old := self.do(lambda redis: older(redis, limit))) and old != last:
            answers += self.forget(old)
            last = old
        return Pruned(answers, self.do(lambda redis: forget_learned(redis, limit)))

    def forget(self, some: Sequence[tuple[bytes | str, float]]) -> int:
        """See `answers_redis_layout.forget`."""
        return self.do(lambda redis: forget(redis, some))

    def damages(self) -> list[Damage]:
        """None: Redis keeps its own files."""
        return []

    def do(self, work: Callable[[Redis], _T], patience: float = math.inf) -> _T:
        """Do `work`, which may be repeated; again while Redis is gone, until it has been so for
        `patience` seconds, or for as long as the store is patient. Raises StoreError."""
        pause, most = PAUSES
        patience = min(patience, self._patience)
        while True:
            began = time.monotonic()
            try:
                if not self._checked:
                    check(self.redis)
                    self._checked = True
                found = work(self.redis)
            except (AuthenticationError, AuthorizationError) as error:
                words = f"{_words(error)} ({PASSWORD} holds its password, on each node)"
                raise StoreRefused(f"{self.at} refuses: {words}") from None
            except (Disconnected, TimedOut, BusyLoadingError) as error:
                # A Redis that hangs has been away since it was asked, not since it was given up.
                now, self._away_since = time.monotonic(), self._away_since or began
                # It may come back without what it held, or another one in its place.
                self._checked = False
                if now - self._away_since >= patience:
                    raise StoreAway(f"{self.at} does not answer: {_words(error)}") from None
                time.sleep(pause)
                pause = min(2 * pause, most)
            except RedisError as error:
                raise StoreRefused(f"{self.at} refuses: {_words(error)}") from None
            else:
                self._away_since = None
                return found


def _client(place: RedisPlace) -> Redis:
    password = os.environ.get(PASSWORD) or None
    return Redis(
        **replace(place, password=password).options(),
        socket_timeout=REPLY_SECONDS,
        socket_connect_timeout=FIRST_SECONDS,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
        driver_info=None,
    )


def _parts(some: Iterable[_T]) -> Iterator[list[_T]]:
    rest = iter(some)
    while part := list(islice(rest, AT_ONCE)):
        yield part


def _words(error: RedisError) -> str:
    return without_secrets(str(error).partition("\n")[0]).rstrip(".") or type(error).__name__
