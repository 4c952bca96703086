"""Which store of answers: a file of this machine, or a Redis that several share.

Invariant: where a store is is a plain value without a secret, which can be sent to another process;
what can be done with an open one is done alike wherever it is.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from serve.ask.answers_redis import AnswersInRedis, RedisAnswers
from serve.ask.answers_repair import LastingAnswers

AnswersAt = Path | AnswersInRedis
OpenAnswers = LastingAnswers | RedisAnswers


def open_at(at: AnswersAt) -> OpenAnswers:
    """The store at `at`. Raises what `LastingAnswers` does; one in Redis is not looked at yet."""
    return RedisAnswers(at) if isinstance(at, AnswersInRedis) else LastingAnswers(at)


def opener(at: AnswersAt) -> Callable[[], OpenAnswers]:
    """What opens the store at `at` again and again. One in Redis stays the same, so that a Redis
    that is gone is waited for once."""
    if isinstance(at, AnswersInRedis):
        store = RedisAnswers(at)
        return lambda: store
    return lambda: LastingAnswers(at)
