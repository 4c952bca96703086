"""The cluster's own models behind the gateway: what a client sees of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import openai
import pytest

from serve.ask.errors import Unavailable
from serve.gateway.build import build_gateway
from serve.models.errors import ModelLoading, ModelLost, ModelNotLoaded
from serve.models.settings import EmbedderSettings, GeneratorSettings
from tests.serve.gateway_world import World, gateway_world
from tests.serve.slow_provider import slow_provider
from tests.serve.tiny_models import TinyCalls, TinyServer

WRITER = GeneratorSettings(generator="tiny", queue=2)
PRICED = WRITER.model_validate({**WRITER.model_dump(), "prices": {"currency": "CNY", "output": 2}})
MODELS: dict[str, EmbedderSettings | GeneratorSettings] = {
    "writer": WRITER,
    "priced": PRICED,
    "reader": EmbedderSettings(embedder="tiny"),
}
NOWHERE = "http://127.0.0.1:9/v1"


class Own:
    """A gateway with models of its own, and OpenAI's client of it."""

    def __init__(self, world: World, calls: TinyCalls) -> None:
        self.world = world
        self.calls = calls
        self.client = openai.OpenAI(base_url=world.base_url, api_key="unused", max_retries=0)

    def ask(self, content: str, model: str = "writer", **more: Any) -> Any:
        """A chat, as OpenAI's client gives it."""
        messages: Any = [{"role": "user", "content": content}]
        return self.client.chat.completions.create(model=model, messages=messages, **more)


@contextmanager
def own(url: str = NOWHERE, **serve: Any) -> Iterator[Own]:
    """With a provider `main` at `url` beside them."""
    calls = TinyCalls({name: TinyServer(each) for name, each in MODELS.items()}, [])
    with gateway_world(
        {"main": url},
        serve,
        lambda settings: build_gateway(
            settings.model_copy(update={"models": MODELS}), models=calls
        ),
    ) as world:
        yield Own(world, calls)


@pytest.fixture(scope="module")
def gateway() -> Iterator[Own]:
    with own() as found:
        yield found


def test_a_model_of_the_cluster_answers_by_both_its_names(gateway: Own) -> None:
    names = [model.id for model in gateway.client.models.list()]
    assert {"local/writer", "writer", "local/reader", "reader"} <= set(names)
    for name in ("writer", "local/writer"):
        answer = gateway.ask("to be or not", name)
        assert answer.choices[0].message.content == "to be or not"
        assert answer.usage.completion_tokens == 4
    vectors = gateway.client.embeddings.create(
        model="reader", input=["one", "two three"], encoding_format="float"
    )
    assert [each.embedding for each in vectors.data] == [[3, 1], [9, 2]]


def test_a_stream_ends_with_what_was_counted_if_that_is_asked_for(gateway: Own) -> None:
    chunks = list(gateway.ask("a b c", stream=True))
    assert [each.choices[0].delta.content for each in chunks] == ["a ", "b ", "c ", None]
    assert chunks[-1].choices[0].finish_reason == "stop"
    counted = list(gateway.ask("a b c", stream=True, stream_options={"include_usage": True}))
    assert counted[-1].usage.total_tokens == 6


@pytest.mark.parametrize(("model", "cost"), [("writer", "0"), ("priced", "0.000006 CNY")])
def test_it_is_free_unless_it_has_prices(gateway: Own, model: str, cost: str) -> None:
    messages = [{"role": "user", "content": "a b c"}]
    answer = httpx.post(
        f"{gateway.world.base_url}/chat/completions", json={"model": model, "messages": messages}
    )
    assert answer.headers["x-fupan-model"] == f"local/{model}"
    assert answer.headers["x-fupan-cost"] == cost


def test_what_it_refuses_is_said_in_its_words(gateway: Own) -> None:
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError) as caught:
            gateway.ask("refuse this", stream=stream)
        assert caught.value.body == {
            "message": "I will not answer that.",
            "type": "invalid_request_error",
            "param": "messages",
            "code": "refused",
        }


def test_a_model_that_gives_vectors_writes_nothing_and_says_so(gateway: Own) -> None:
    with pytest.raises(openai.BadRequestError, match="reader gives vectors"):
        gateway.ask("hello", "reader")
    with pytest.raises(openai.BadRequestError, match="writer writes: ask it at /v1/chat"):
        gateway.client.embeddings.create(model="writer", input="hello")


def test_what_breaks_in_the_middle_of_a_stream_is_told_by_an_event(gateway: Own) -> None:
    with pytest.raises(openai.APIError, match="local/writer answered 500"):
        list(gateway.ask("break it here", stream=True))
    assert gateway.calls.servers["writer"].running == 0


def test_a_full_queue_says_when_to_come_again(gateway: Own) -> None:
    writer = gateway.calls.servers["writer"]

    async def crowd() -> httpx.Response:
        async with httpx.AsyncClient(base_url=gateway.world.base_url) as client:

            def ask(content: str) -> asyncio.Task[httpx.Response]:
                messages = [{"role": "user", "content": content}]
                body = {"model": "writer", "messages": messages}
                return asyncio.create_task(client.post("chat/completions", json=body))

            held = [ask("hold"), ask("hold")]
            for _ in held:
                await asyncio.to_thread(gateway.world.run, writer.held.acquire())
            turned_away = await ask("hello")
            gateway.world.loop.call_soon_threadsafe(writer.release.set)
            assert [answer.status_code for answer in await asyncio.gather(*held)] == [200, 200]
            return turned_away

    answer = asyncio.run(crowd())
    gateway.world.loop.call_soon_threadsafe(writer.release.clear)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert answer.json()["error"]["code"] == "model_overloaded"


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_frees_its_place_at_once(gateway: Own, stream: bool) -> None:
    writer = gateway.calls.servers["writer"]

    async def leave() -> None:
        async with httpx.AsyncClient(base_url=gateway.world.base_url) as client:
            messages = [{"role": "user", "content": "hold"}]
            body = {"model": "writer", "messages": messages, "stream": stream}
            asked = asyncio.create_task(client.post("chat/completions", json=body))
            await asyncio.to_thread(gateway.world.run, writer.held.acquire())
            assert writer.running == 1
            asked.cancel()

    asyncio.run(leave())
    until = time.monotonic() + 20
    while writer.running and time.monotonic() < until:
        time.sleep(0.01)
    assert writer.running == 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_process_that_dies_is_made_up_for_once(gateway: Own, stream: bool) -> None:
    calls = gateway.calls
    before = calls.calls
    calls.lost[:] = [ModelLost("it ended")]
    answer = gateway.ask("hello", stream=stream)
    said = answer if stream else [answer]
    assert len(list(said)) >= 1
    assert calls.calls == before + 2
    calls.lost[:] = [ModelLost("it ended"), ModelLost("it ended")]
    with pytest.raises(openai.InternalServerError) as caught:
        gateway.ask("hello", stream=stream)
    assert caught.value.status_code == 503
    assert calls.calls == before + 4


def test_a_model_that_is_not_loaded_is_named(gateway: Own) -> None:
    gateway.calls.lost[:] = [ModelNotLoaded("no application")]
    with pytest.raises(openai.InternalServerError, match="local/writer cannot answer: it could"):
        gateway.ask("hello")


def test_one_that_cannot_be_loaded_says_when_to_come_again_and_nothing_of_why(gateway: Own) -> None:
    for stream in (False, True):
        gateway.calls.lost[:] = [ModelNotLoaded("no /weights/secret", 503, 41.2)]
        with pytest.raises(openai.InternalServerError) as caught:
            gateway.ask("hello", stream=stream)
        assert caught.value.status_code == 503
        assert caught.value.code == "provider_unavailable"
        assert caught.value.response.headers["retry-after"] == "42"
        assert "weights" not in caught.value.response.text
        assert "could not be loaded" in str(caught.value)
        assert "Whoever runs this gateway finds the reason" in str(caught.value)


def test_providers_and_own_models_stand_in_for_each_other() -> None:
    names = {
        "own-first": {"use": ["local/writer", "main/simulated"]},
        "own-last": {"use": ["main/simulated", "local/writer"]},
    }
    with own(names=names) as gateway:
        # Nobody listens where the provider should be.
        assert gateway.ask("hello", "own-last").choices[0].message.content == "hello"
    with slow_provider() as provider, own(provider.base_url, names=names) as gateway:
        gateway.calls.lost[:] = [Unavailable("the queue is full", 503, 2.0)]
        assert gateway.ask("hello", "own-first").choices[0].message.content == "done"
        assert gateway.calls.calls == 1


def test_a_model_that_is_being_loaded_is_left_for_the_next() -> None:
    names = {"own-first": {"use": ["local/writer", "main/simulated"]}}
    with slow_provider() as provider, own(provider.base_url, names=names, timeout=4) as gateway:
        gateway.calls.loading = {"writer"}
        assert gateway.ask("hello", "own-first").choices[0].message.content == "done"
        assert gateway.calls.calls == 0
        gateway.world.loop.call_soon_threadsafe(gateway.calls.loaded.set)
        assert gateway.ask("hello", "own-first").choices[0].message.content == "hello"


def test_one_that_is_still_being_loaded_is_not_said_to_have_failed() -> None:
    names = {"own-only": {"use": ["local/writer", "local/priced"]}}
    with own(names=names, timeout=0.4) as gateway:
        gateway.calls.loading = {"writer", "priced"}
        gateway.calls.lost[:] = [ModelLoading("on its way")]
        with pytest.raises(openai.InternalServerError, match="it is still being loaded"):
            gateway.ask("hello", "own-only")


def test_no_answer_within_the_requests_time_is_told_as_such() -> None:
    with own(timeout=0.3) as gateway:
        for stream in (False, True):
            with pytest.raises(openai.APIError, match="gave no complete answer in time"):
                list(gateway.ask("hold", stream=stream))
        assert gateway.calls.servers["writer"].running == 0
