"""OpenAI's client at the gateway, with a generator of the cluster behind it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from serve.gateway.build import build_gateway
from serve.gateway.keys import digest_of, new_key
from serve.generation.server import GenerationServer
from serve.models.settings import GeneratorSettings
from serve.models.tenant import TENANT
from tests.serve.gateway_world import World, gateway_world
from tests.serve.generation_world import DirectCalls, FakeForward, server

NOWHERE = "http://127.0.0.1:9/v1"
PATIENCE_SECONDS = 60.0


class Chat:
    """A gateway in front of `served`, and the client of it."""

    def __init__(self, world: World, served: GenerationServer) -> None:
        self.served = served
        self.base_url = world.base_url
        self.client = self.client_of("unused")

    def client_of(self, key: str) -> openai.OpenAI:
        """OpenAI's client, with an API key of its own."""
        return openai.OpenAI(base_url=self.base_url, api_key=key, max_retries=0)

    def ask(self, content: str, **more: Any) -> Any:
        """A chat, as the client gives it."""
        messages: Any = [{"role": "user", "content": content}]
        return self.client.chat.completions.create(
            model="local/writer", messages=messages, temperature=0, **more
        )


@contextmanager
def chat_with(served: GenerationServer, **serve: Any) -> Iterator[Chat]:
    models = {"writer": GeneratorSettings(generator="any")}
    with gateway_world(
        {"main": NOWHERE},
        serve,
        build=lambda settings: build_gateway(
            settings.model_copy(update={"models": models}), models=DirectCalls(served)
        ),
    ) as world:
        yield Chat(world, served)
        asyncio.run_coroutine_threadsafe(served.aclose(), world.loop).result()


def test_whole_and_streamed_say_the_same() -> None:
    with chat_with(server(FakeForward())) as chat:
        whole = chat.ask("hello", max_tokens=6, logprobs=True, top_logprobs=1)
        assert whole.choices[0].finish_reason == "length"
        assert len(whole.choices[0].logprobs.content) == 6
        chunks = list(
            chat.ask("hello", max_tokens=6, stream=True, stream_options={"include_usage": True})
        )
        said = [each.choices[0].delta.content or "" for each in chunks if each.choices]
        assert "".join(said) == whole.choices[0].message.content
        assert chunks[-1].usage == whole.usage.model_copy(
            update={"prompt_tokens_details": chunks[-1].usage.prompt_tokens_details}
        )


def test_a_conversation_goes_on_with_what_the_client_was_given() -> None:
    with chat_with(server(FakeForward())) as chat:
        messages: list[Any] = [{"role": "user", "content": "hello"}]

        def said() -> Any:
            given = chat.client.chat.completions.create(
                model="writer", messages=messages, max_tokens=4
            )
            return given.choices[0].message

        first = said()
        messages += [first, {"role": "user", "content": "and then?"}]
        assert said().content
        # Written down by whoever keeps a conversation, with every field that the client knows.
        messages[1] = first.model_dump()
        assert {"refusal", "tool_calls", "function_call", "audio"} <= set(messages[1])
        messages += [said().model_dump(), {"role": "user", "content": "and at last?"}]
        assert said().content


def test_how_much_was_computed_before_tells_nothing_of_another_tenant(tmp_path: Path) -> None:
    keys = {name: new_key() for name in ("shop", "bank")}
    records = [
        {"name": name, "tenant": name, "sha256": digest_of(key)} for name, key in keys.items()
    ]
    (tmp_path / "keys.json").write_text(json.dumps(records))
    with chat_with(server(FakeForward()), keys=str(tmp_path / "keys.json")) as chat:

        def cached(name: str, **more: Any) -> int:
            asked: Any = [{"role": "user", "content": "What does the contract with Ann say?"}]
            answer = chat.client_of(keys[name]).chat.completions.create(
                model="writer", messages=asked, max_tokens=2, **more
            )
            assert answer.usage is not None
            assert answer.usage.prompt_tokens_details is not None
            return answer.usage.prompt_tokens_details.cached_tokens or 0

        assert cached("shop") == 0
        assert cached("shop") > 0
        assert cached("bank", extra_body={TENANT: "shop"}) == 0


@pytest.mark.parametrize(
    ("more", "param", "code"),
    [
        ({"n": 2}, "n", None),
        ({"extra_body": {"top_k": 3}}, "top_k", "unknown_parameter"),
        ({"max_tokens": 9999}, "messages", "context_length_exceeded"),
    ],
)
def test_what_is_refused_is_refused_in_openais_words(
    more: dict[str, Any], param: str, code: str | None
) -> None:
    with chat_with(server(FakeForward())) as chat, pytest.raises(openai.BadRequestError) as caught:
        chat.ask("hello", **more)
    assert (caught.value.param, caught.value.code) == (param, code)


def test_a_client_that_leaves_in_the_middle_frees_its_slot_at_once() -> None:
    forward = FakeForward(slots=1, context=4000)
    forward.gate = threading.Semaphore(3)
    served = server(forward)
    with chat_with(served) as chat:
        stream = chat.ask("long", stream=True, max_tokens=3000)
        next(iter(stream))
        stream.close()
        _until(lambda: served.numbers()["running"] == 0)
        steps = len(forward.plans)
        forward.gate.release(4)
        chat.ask("next", max_tokens=2)
        # One step may have begun before the client was seen to be gone.
        assert len(forward.plans) <= steps + 3


def test_a_full_queue_is_503_with_the_time_to_come_again() -> None:
    forward = FakeForward(slots=1)
    forward.gate = threading.Semaphore(0)
    served = server(forward, queue=1)
    with chat_with(served) as chat:
        waiting = [
            threading.Thread(target=chat.ask, args=(f"{i}",), kwargs={"max_tokens": 1})
            for i in range(2)
        ]
        for each in waiting:
            each.start()
        _until(lambda: served.numbers()["running"] + served.numbers()["queue"] == 2)
        with pytest.raises(openai.InternalServerError) as caught:
            chat.ask("one too many")
        forward.gate.release(100)
        for each in waiting:
            each.join()
    assert caught.value.status_code == 503
    assert float(caught.value.response.headers["retry-after"]) >= 1


@pytest.mark.slow
def test_the_small_model_answers_by_a_schema_and_in_a_stream() -> None:
    served = GenerationServer(GeneratorSettings(generator="smollm2-135m", context=512))
    with chat_with(served) as chat:
        stream = chat.ask("What is the capital of France?", stream=True, max_tokens=20)
        said = "".join(each.choices[0].delta.content or "" for each in stream)
        assert said == "The capital of France is Paris."
        schema = {
            "type": "object",
            "properties": {
                "city": {"type": "string", "maxLength": 9},
                "at": {"enum": ["EU", "US"]},
            },
            "required": ["city", "at"],
            "additionalProperties": False,
        }
        wanted = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema}}
        answer = chat.ask("Where is the Eiffel tower?", response_format=wanted, max_tokens=60)
        found = json.loads(answer.choices[0].message.content)
        assert set(found) == {"city", "at"}
        long = chat.ask("Count to a thousand.", stream=True)
        next(iter(long))
        long.close()
        _until(lambda: served.numbers()["running"] == 0)


def _until(true: Any) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.005)
