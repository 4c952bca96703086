"""The store of answers in a Redis that is gone for a while, stays away, or hangs."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from serve.ask import answers_redis
from serve.ask.answers_redis import StoreAway
from tests.redis_server import RedisServer
from tests.serve.test_answers_redis import ONE, TWO, opened

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("empty")]


class Skipping:
    """The store's `time`, whose pauses take none: their seconds so far are in `pauses`."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self.skipped = 0.0
        self.in_third_pause: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        return time.monotonic() + self.skipped

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.skipped += seconds
        if len(self.pauses) == 3:
            self.in_third_pause()


@pytest.fixture
def skipping(monkeypatch: pytest.MonkeyPatch) -> Skipping:
    made = Skipping()
    monkeypatch.setattr(answers_redis, "time", made)
    return made


def test_a_killed_redis_that_comes_back_has_lost_nothing_that_was_stored(
    server: RedisServer, skipping: Skipping
) -> None:
    answers = opened(server)
    answers.put_many([(ONE, b"1")])
    answers.keep_learned("reserve", b"2")
    server.kill()
    skipping.in_third_pause = server.start
    answers.put_many([(TWO, b"2")])
    assert len(skipping.pauses) == 3
    assert answers.get_many([ONE, TWO]) == {ONE: b"1", TWO: b"2"}
    assert answers.learned("reserve") == b"2"


def test_a_redis_that_stays_away_is_waited_for_once(
    server: RedisServer, skipping: Skipping
) -> None:
    answers = opened(server, patience=40.0)
    answers.put_many([(ONE, b"1")])
    server.kill()
    try:
        with pytest.raises(StoreAway):
            answers.get_many([ONE])
        assert 30 < sum(skipping.pauses) < 42
        skipping.pauses.clear()
        for _ in range(3):
            with pytest.raises(StoreAway):
                answers.put_many([(TWO, b"2")])
        assert not skipping.pauses
    finally:
        server.start()
    assert answers.get_many([ONE]) == {ONE: b"1"}


def test_a_redis_that_hangs_is_waited_for_as_long_as_one_that_is_gone(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch, skipping: Skipping
) -> None:
    monkeypatch.setattr(answers_redis, "REPLY_SECONDS", 0.4)
    with opened(server, patience=0.7) as store:
        store.put_many([(ONE, b"1")])
        with server.client() as client:
            client.client_pause(1_500)
        with pytest.raises(StoreAway):
            store.get_many([ONE])
    # Two tries; counted from the end of the first there would be three.
    assert len(skipping.pauses) <= 1
