"""What a gateway refuses to be built of, and what it holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from serve.ask.errors import Misconfigured
from serve.gateway.build import build_gateway
from serve.gateway.contract import Answered, Stream
from serve.gateway.held import Held
from serve.gateway.settings import GatewaySettings
from tests.serve.gateway_world import provider_at


def build(**serve: Any) -> None:
    provider = provider_at("http://127.0.0.1:9/v1")
    build_gateway(GatewaySettings.model_validate({"providers": {"main": provider}, "serve": serve}))


@pytest.mark.parametrize(
    ("serve", "said"),
    [
        ({"redis_env": "NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE"),
        ({"keys_env": "NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE"),
        ({"keys": "/nowhere/keys.yaml"}, "/nowhere/keys.yaml"),
        ({"names": {"best": {"use": ["other/model"]}}}, "serve.names.best.use"),
        ({"auto": {"fast": "main/simulated", "powerful": "none"}}, "serve.auto.powerful"),
        ({"cache": {"semantic": True, "embedding": "/nowhere/model"}}, "serve.cache.embedding"),
    ],
)
def test_what_makes_no_sense_is_named_before_anybody_asks(serve: dict[str, Any], said: str) -> None:
    with pytest.raises(Misconfigured, match=said.replace(".", r"\.")):
        build(**serve)


def test_a_password_in_the_url_of_redis_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_HERE", "nothing://:hunter2@127.0.0.1")
    with pytest.raises(Misconfigured) as caught:
        build(redis_env="REDIS_HERE")
    assert "hunter2" not in str(caught.value)


class Events:
    """Two events; notes whether it was closed."""

    def __init__(self, fails: bool = False) -> None:
        self.closed = 0
        self._fails = fails
        self._left = [b"one", b"two"]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise ZeroDivisionError if self._fails else StopAsyncIteration
        return self._left.pop(0)

    async def aclose(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("read", [0, 1, 2, 3])
async def test_what_a_stream_holds_is_given_back_once_however_far_it_is_read(read: int) -> None:
    given_back = []

    async def give_back() -> None:
        given_back.append(1)

    events = Events()
    held = Held(Stream(events, Answered()), give_back)
    for _ in range(read):
        await anext(held, None)
    await held.aclose()
    await held.aclose()
    assert (given_back, events.closed) == ([1], 1)


async def test_it_is_given_back_when_a_stream_fails() -> None:
    given_back = []

    async def give_back() -> None:
        given_back.append(1)

    held = Held(Stream(Events(fails=True), Answered()), give_back)
    assert [await anext(held), await anext(held)] == [b"one", b"two"]
    with pytest.raises(ZeroDivisionError):
        await anext(held)
    assert given_back == [1]
