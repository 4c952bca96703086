"""The store of answers in a real Redis: kept, found again, forgotten, and over restarts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest

from serve.ask.answers import answer_key
from serve.ask.answers_file import ForeignFile, NewerStore, StoreError
from serve.ask.answers_redis import (
    PASSWORD,
    AnswersInRedis,
    RedisAnswers,
    StoreAway,
    StoreRefused,
)
from serve.ask.answers_redis_layout import AGES, ANSWER, AT_ONCE, LEARNED, META
from serve.ask.answers_redis_upkeep import contents
from serve.ask.redis_place import RedisPlace
from tests.redis_server import RedisServer, redis_server

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("empty")]

ONE, TWO, THREE = (answer_key(name) for name in ("one", "two", "three"))


@pytest.fixture
def answers(server: RedisServer) -> Iterator[RedisAnswers]:
    with opened(server) as store:
        yield store


def opened(
    server: RedisServer, at: float | None = None, keep: int | None = None, patience: float = 30.0
) -> RedisAnswers:
    """The store, at a fixed time (seconds since the epoch) where one is given."""
    place = AnswersInRedis(RedisPlace.of(server.url), keep)
    return RedisAnswers(place, patience, clock=time.time if at is None else lambda: at)


def test_the_first_answer_stays_unless_it_is_replaced(
    server: RedisServer, answers: RedisAnswers
) -> None:
    answers.put_many([(ONE, b'{"n":1}'), (TWO, b"\x00\xff")])
    answers.put_many([(ONE, b'{"n":2}')])
    assert answers.get_many([ONE, TWO, THREE]) == {ONE: b'{"n":1}', TWO: b"\x00\xff"}
    answers.put_many([(ONE, b'{"n":3}')], replace=True)
    with opened(server) as other:
        assert other.get_many([ONE]) == {ONE: b'{"n":3}'}
        assert other.get_many([]) == {}


def test_more_than_one_call_holds(answers: RedisAnswers) -> None:
    items = [(answer_key(str(n)), b"%d" % n) for n in range(2 * AT_ONCE + 1)]
    answers.put_many(items)
    assert answers.get_many([key for key, _ in items]) == dict(items)


def test_only_answers_since_a_time_are_recalled(server: RedisServer) -> None:
    opened(server, at=100.0).put_many([(ONE, b"1"), (TWO, b"2")])
    late = opened(server, at=200.0)
    late.put_many([(TWO, b"anew")])
    late.put_many([(THREE, b"3")])
    assert late.get_many([ONE, TWO, THREE], since=150.0) == {THREE: b"3"}
    assert late.get_many([ONE, TWO, THREE], since=100.9) == {ONE: b"1", TWO: b"2", THREE: b"3"}
    late.put_many([(TWO, b"anew")], replace=True)
    assert late.get_many([TWO], since=150.0) == {TWO: b"anew"}


def test_what_was_learned_is_kept_by_name(server: RedisServer) -> None:
    answers = opened(server, at=100.0)
    assert answers.learned("reserve") is None
    answers.keep_learned("reserve", b"1 2 3")
    answers.keep_learned("reserve", b" 4 5")
    assert answers.learned("reserve") == b" 4 5"
    assert answers.learned("reserve", since=100.0) == b" 4 5"
    assert answers.learned("reserve", since=101.0) is None


def test_old_answers_are_forgotten_and_new_ones_stay(server: RedisServer) -> None:
    early, late = opened(server, at=100.0), opened(server, at=200.0)
    many = [(answer_key(str(n)), b"x") for n in range(AT_ONCE + 20)]
    early.put_many(many)
    early.keep_learned("a", b"1")
    late.put_many([(ONE, b"1")])
    late.keep_learned("b", b"1")
    assert late.prune(before=200.0) == (len(many), 1)
    assert late.prune(before=200.0) == (0, 0)
    assert late.get_many([ONE, many[0][0]]) == {ONE: b"1"}
    assert (late.learned("a"), late.learned("b")) == (None, b"1")
    with server.client() as client:
        assert client.zcard(AGES) == 1


def test_an_answer_kept_for_a_time_goes_by_itself_and_can_be_stored_again(
    server: RedisServer,
) -> None:
    answers = opened(server, at=100.0, keep=60)
    answers.put_many([(ONE, b"1")])
    with server.client() as client:
        name = ANSWER + ONE.hex()
        assert 50 <= int(client.ttl(name)) <= 60
        client.delete(name)  # What Redis does when the time is over.
    assert answers.get_many([ONE]) == {}
    late = opened(server, at=200.0, keep=60)
    late.put_many([(ONE, b"2")])
    assert late.get_many([ONE], since=150.0) == {ONE: b"2"}
    assert late.prune(before=150.0) == (0, 0)
    assert late.get_many([ONE]) == {ONE: b"2"}


def test_two_that_store_the_same_agree_on_the_first(server: RedisServer) -> None:
    keys = [answer_key(str(n)) for n in range(50)]

    def store(name: bytes) -> dict[bytes, bytes]:
        with opened(server) as answers:
            for key in keys:
                answers.put_many([(key, name)])
            return answers.get_many(keys)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(store, (b"a", b"b", b"c", b"d")))
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize(
    ("found", "error"),
    [
        (orjson.dumps({"application": "fupan", "version": 2}), NewerStore),
        (orjson.dumps({"application": "songs", "version": 1}), ForeignFile),
        (b"hello", ForeignFile),
        (b"7", ForeignFile),
        (None, ForeignFile),
    ],
)
def test_what_is_no_store_of_ours_is_left_alone(
    server: RedisServer, found: bytes | None, error: type[StoreError]
) -> None:
    with server.client() as client:
        if found is None:
            client.rpush(META, "a list")
        else:
            client.set(META, found)
        with opened(server) as answers:
            with pytest.raises(error):
                answers.check()
            with pytest.raises(error):
                answers.put_many([(ONE, b"1")])
        assert client.keys("*") == [META.encode()]


@pytest.mark.parametrize(("member", "score"), [("aa", "1.5"), ("not hex", "-inf"), (b"\xff", "3")])
def test_what_fupan_never_wrote_is_forgotten_by_age_in_the_end(
    server: RedisServer, answers: RedisAnswers, member: str | bytes, score: str
) -> None:
    answers.put_many([(ONE, b"1")])
    with server.client() as client:
        client.zadd(AGES, {member: score})
    assert answers.prune(1_000) == (0, 0)
    with server.client() as client:
        assert client.zrange(AGES, 0, -1) == [ONE.hex().encode()]


@pytest.mark.parametrize(
    "command",
    [
        ("zadd", AGES, "1e300", ONE.hex()),
        ("zadd", AGES, "5", "not hex"),
        ("zadd", AGES, "5", "AA"),
        ("hset", LEARNED, "sizes", "yesterday {}"),
        ("hset", LEARNED, "sizes", "9" * 30 + " {}"),
        ("set", AGES, "another program's"),
        ("set", LEARNED, "another program's"),
    ],
)
def test_what_cannot_be_understood_is_told_by_its_key(
    server: RedisServer, command: tuple[str, ...]
) -> None:
    with opened(server) as store:
        store.put_many([(ONE, b"1")])
    with server.client() as client:
        if command[0] == "set":
            client.delete(command[1])
        client.execute_command(*command)
    with opened(server) as store, pytest.raises(StoreError, match=command[1]):
        contents(store)


def test_a_full_redis_says_so_and_stores_nothing(
    server: RedisServer, answers: RedisAnswers
) -> None:
    answers.put_many([(ONE, b"1")])
    with server.client() as client:
        client.config_set("maxmemory", 1)
        try:
            with pytest.raises(StoreRefused, match="memory"):
                answers.put_many([(TWO, b"2")])
        finally:
            client.config_set("maxmemory", 0)
    assert answers.get_many([ONE, TWO]) == {ONE: b"1"}


def test_the_password_comes_from_the_environment_and_is_never_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with redis_server(password="s3cret") as locked:
        for password in (None, "s3cret-of-another"):
            if password is None:
                monkeypatch.delenv(PASSWORD, raising=False)
            else:
                monkeypatch.setenv(PASSWORD, password)
            with opened(locked) as answers, pytest.raises(StoreRefused, match=PASSWORD) as caught:
                answers.check()
            assert "s3cret" not in f"{caught.value} {answers.at!r}"
            assert caught.value.__suppress_context__
        monkeypatch.setenv(PASSWORD, "s3cret")
        with opened(locked) as answers:
            answers.put_many([(ONE, b"1")])
            assert answers.get_many([ONE]) == {ONE: b"1"}


def test_one_that_was_never_there_is_said(tmp_path: Path) -> None:
    at = AnswersInRedis(RedisPlace(socket=str(tmp_path / "none")))
    with RedisAnswers(at, patience=0.1) as answers, pytest.raises(StoreAway, match="none"):
        answers.check()
