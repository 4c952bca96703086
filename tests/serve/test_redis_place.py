"""URLs of a Redis: understood whole or refused, and never shown with a password."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from serve.ask.redis_place import RedisPlace, is_redis
from serve.gateway.settings import ServeSettings


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("redis://cache", RedisPlace("cache")),
        ("redis://10.0.0.7:6380/3", RedisPlace("10.0.0.7", 6380, database=3)),
        ("rediss://fupan@cache.example/", RedisPlace("cache.example", tls=True, user="fupan")),
        ("redis://[::1]:6379/0", RedisPlace("::1")),
        ("unix:///run/redis.sock?db=2", RedisPlace(socket="/run/redis.sock", database=2)),
        ("redis://:p%40ss@cache", RedisPlace("cache", password="p@ss")),
    ],
)
def test_a_url_is_understood(url: str, place: RedisPlace) -> None:
    assert RedisPlace.of(url) == place
    assert is_redis(url)
    assert RedisPlace.of(str(place)) == replace(place, password=None)


@pytest.mark.parametrize(
    "url",
    [
        "redis://",
        "redis://:s3cret@",
        "http://s3cret@cache",
        "redis://:s3cret@cache:port",
        "redis://:s3cret@cache/one",
        "redis://:s3cret@cache?socket_timeout=9",
        "redis://cache:99999?password=s3cret",
        "redis://:s3cret/x@cache:1",
        "unix://",
        "unix://:s3cret@cache/run/redis.sock",
        "unix:///run/redis.sock?password=s3cret",
    ],
)
def test_what_is_no_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ValueError, match="no URL of a Redis") as caught:
        RedisPlace.of(url)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@given(
    st.text(min_size=1).map(lambda text: f"s3cret{text}"),
    st.text(min_size=1).filter(lambda text: "s3cret" not in text),
)
def test_a_password_is_never_shown(password: str, user: str) -> None:
    url = f"redis://{quote(user, safe='')}:{quote(password, safe='')}@cache/1"
    place = RedisPlace.of(url)
    assert (place.user, place.password) == (user, password)
    assert "s3cret" not in f"{place} {place!r}"


@pytest.mark.parametrize("url", ["redis://:s3cret@cache", "redis://:s3cret@cache:x", "s3cret"])
def test_fupan_yaml_holds_no_password(url: str) -> None:
    with pytest.raises(ValidationError, match="redis") as caught:
        ServeSettings.model_validate({"redis": url})
    assert "s3cret" not in str(caught.value)
    assert ServeSettings(redis="redis://fupan@cache/1").redis == "redis://fupan@cache/1"


def test_fupan_yaml_holds_no_other_url_than_that_of_a_redis() -> None:
    with pytest.raises(ValidationError, match=r"redis\n.*no URL of a Redis"):
        ServeSettings(redis="http://127.0.0.1")
