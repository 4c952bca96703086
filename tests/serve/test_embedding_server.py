"""`EmbeddingServer` before a model that does as it is told: what a client gets."""

from __future__ import annotations

import base64
import pickle
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from serve.ask.errors import ContextOverflow, Refused, Unavailable
from serve.embedding.engine import EmbeddingModelError, Vectors
from tests.serve.embedding_world import DIM, FakeEngine, ask, near, server, vector_of, vectors


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


async def test_an_answer_is_openais(engine: FakeEngine) -> None:
    async with server(engine) as of:
        answer = await ask(of, ["b b", "a", "b b"])
    assert answer["object"] == "list"
    assert answer["model"] == "fake"
    assert answer["usage"] == {"prompt_tokens": 5, "total_tokens": 5}
    assert [(item["object"], item["index"]) for item in answer["data"]] == [
        ("embedding", place) for place in range(3)
    ]
    for item, text in zip(answer["data"], ["b b", "a", "b b"], strict=True):
        assert near(item["embedding"], text)


async def test_floats_and_base64_are_the_same_float32(engine: FakeEngine) -> None:
    async with server(engine) as of:
        (floats,) = await vectors(of, "a")
        (coded,) = await vectors(of, "a", encoding_format="base64")
    decoded = np.frombuffer(base64.b64decode(str(coded)), dtype="<f4")
    assert np.array_equal(decoded, np.array(floats, dtype=np.float32))


async def test_dimensions_cut_the_vector_and_bring_it_to_length_one(engine: FakeEngine) -> None:
    async with server(engine) as of:
        ((first, second),) = await vectors(of, "a", dimensions=2)
    whole = vector_of("a")[:2]
    assert np.allclose([first, second], whole / np.linalg.norm(whole), atol=1e-6)


async def test_token_numbers_are_read_as_openais(engine: FakeEngine) -> None:
    async with server(engine) as of:
        (one,) = await vectors(of, [9906, 1917])
        two = await vectors(of, [[9906, 1917], [9906]])
    assert near(one, "Hello world")
    assert near(two[0], "Hello world")
    assert near(two[1], "Hello")


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        ({"input": ""}, "input", "empty_input"),
        ({"input": []}, "input", "empty_input"),
        ({"input": ["a", ""]}, "input[1]", "empty_input"),
        ({"input": [[1], []]}, "input[1]", "empty_input"),
        ({"input": 5}, "input", "invalid_type"),
        ({"input": ["a", 5]}, "input[1]", "invalid_type"),
        ({}, "input", "missing_required_parameter"),
        ({"input": ["a"] * 2049}, "input", "array_above_max_length"),
        ({"input": [10**9]}, "input", "invalid_token"),
        ({"input": [[1], [-1]]}, "input[1]", "invalid_token"),
        ({"input": "a", "dimensions": 0}, "dimensions", "integer_below_min_value"),
        ({"input": "a", "dimensions": DIM + 1}, "dimensions", "integer_above_max_value"),
        ({"input": "a", "dimensions": True}, "dimensions", "invalid_type"),
        ({"input": "a", "encoding_format": "int8"}, "encoding_format", "invalid_value"),
        ({"input": "a", "truncate": "yes"}, "truncate", "invalid_type"),
        ({"input": "a", "input_type": "query"}, "input_type", "unknown_parameter"),
        ({"input": "a", "dimension": 2}, "dimension", "unknown_parameter"),
    ],
)
async def test_a_bad_request_is_refused_by_the_field(
    engine: FakeEngine, body: dict[str, Any], param: str, code: str
) -> None:
    async with server(engine) as of:
        with pytest.raises(Refused) as told:
            await of.answer("embeddings", {"model": "fake", **body}, 5.0)
    error = pickle.loads(pickle.dumps(told.value))  # noqa: S301 as between processes
    assert (error.status, error.param, error.code) == (400, param, code)
    assert param in error.said
    assert not engine.computed


@pytest.mark.parametrize("text", ["w " * 9, "x" * 10_000_000, "w " * 10_000_000])
async def test_an_over_long_text_is_refused_unless_it_may_be_cut(
    engine: FakeEngine, text: str
) -> None:
    async with server(engine) as of:
        with pytest.raises(ContextOverflow) as told:
            await ask(of, ["a", text])
        answer = await ask(of, ["a", text], truncate=True)
        # What was cut is kept as what it was: over-long.
        with pytest.raises(ContextOverflow):
            await ask(of, text)
    assert (told.value.status, told.value.param) == (400, "input[1]")
    assert "truncate" in told.value.said
    assert answer["usage"]["prompt_tokens"] <= 1 + engine.most_tokens
    assert max(len(text.split()) for text in engine.computed) <= engine.most_tokens


@pytest.mark.parametrize(
    ("given", "has"),
    [
        ("w " * 9, "9 tokens"),
        ("x" * 257, "257 characters"),
        ([9906] * 257, "257 tokens"),
        ([9906] * 60, "more than 256 characters"),
    ],
)
async def test_how_long_a_text_may_be_is_said_in_tokens(
    engine: FakeEngine, given: Any, has: str
) -> None:
    async with server(engine) as of:
        with pytest.raises(ContextOverflow) as told:
            await ask(of, given)
    assert f"it has {has}; this model reads at most 8 tokens of a text." in told.value.said


async def test_who_asks_changes_no_vector(engine: FakeEngine) -> None:
    async with server(engine) as of:
        (alone,), (named,) = await vectors(of, "a"), await vectors(of, "a", user="u1")
    assert alone == named


async def test_neither_chats_nor_streams_are_answered(engine: FakeEngine) -> None:
    async with server(engine) as of:
        with pytest.raises(Refused, match="vectors"):
            await of.answer("chat/completions", {"model": "fake", "messages": []}, 5.0)
        with pytest.raises(Refused, match="vectors"):
            await anext(of.stream("embeddings", {"model": "fake", "input": "a"}, 5.0))


@pytest.mark.parametrize(
    "text", ["\0", "a\0b", "\ud800 alone", "\n\t ", "\u202e\ufeff", "😀" * 60], ids=ascii
)
async def test_odd_texts_have_vectors_and_harm_nobody(engine: FakeEngine, text: str) -> None:
    async with server(engine) as of:
        answer = await ask(of, ["a", text])
    assert near(answer["data"][0]["embedding"], "a")
    assert len(answer["data"]) == 2


@pytest.mark.parametrize(("numbers", "apart"), [(10, False), (10_000, True)])
async def test_many_token_numbers_are_read_apart_from_the_loop(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, numbers: int, apart: bool
) -> None:
    threads: list[threading.Thread] = []

    def read(_: Sequence[int]) -> str:
        threads.append(threading.current_thread())
        return "a"

    monkeypatch.setattr("serve.embedding.request.text_of", read)
    async with server(engine) as of:
        await ask(of, [9906] * numbers, truncate=True)
    assert [thread is not threading.current_thread() for thread in threads] == [apart]


async def test_whatever_else_fails_is_an_ask_error(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server(engine) as of:
        monkeypatch.setattr(engine, "count", lambda _: 1 // 0)
        with pytest.raises(Unavailable, match="division") as told:
            await ask(of, "a")
    assert told.value.status == 500


async def test_what_is_not_of_numbers_is_no_vector(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = engine.run

    def overflowing(texts: Sequence[str]) -> Vectors:
        vectors = run(texts)
        vectors[["b" in text for text in texts]] = np.nan
        return vectors

    monkeypatch.setattr(engine, "run", overflowing)
    async with server(engine) as of:
        with pytest.raises(Unavailable, match=r"input\[1\]"):
            await ask(of, ["a", "b"])
        assert await ask(of, "a")
    monkeypatch.setattr(engine, "run", lambda texts: np.full((len(texts), DIM), np.nan))
    with pytest.raises(EmbeddingModelError, match="fake has no vector"):
        async with server(engine):
            pass
