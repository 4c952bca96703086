"""OpenAI's client against the gateway and the bundled model of the cluster's own.

The tests of this file share one cluster.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
import ray
from ray import serve as ray_serve

from serve.app import APPLICATION as GATEWAY
from serve.app import application as gateway_application
from serve.embedder import Embedder
from serve.gateway.settings import GatewaySettings
from serve.models.app import placement, targets

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "embeddings.md"
SETTINGS = GatewaySettings.model_validate({"models": {"e5": {"embedder": "bundled"}}})


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ray.init(
        address="local",
        namespace="fupan",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
    )
    try:
        ray_serve.start(http_options={"host": "127.0.0.1", "port": port})
        placements = {name: placement(entry) for name, entry in SETTINGS.models.items()}
        ray_serve.run_many(targets(SETTINGS, placements))
        ray_serve.run(gateway_application(SETTINGS), name=GATEWAY, route_prefix="/")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        ray_serve.shutdown()
        ray.shutdown()


@pytest.fixture(scope="module")
def client(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=url, api_key="unused", max_retries=0)


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder()


def vectors(client: openai.OpenAI, given: Any, **more: Any) -> Any:
    """Rows of float32, by the client's default, which is base64."""
    answer = client.embeddings.create(model="e5", input=given, **more)
    assert [item.index for item in answer.data] == list(range(len(answer.data)))
    return np.array([item.embedding for item in answer.data], dtype=np.float32)


def test_the_vectors_are_those_of_the_model_in_every_form(
    client: openai.OpenAI, embedder: Embedder
) -> None:
    texts = ["退款还没有到账", "no space left on device", "Hello world", "退款还没有到账"]
    expected = embedder.encode(texts)
    assert np.array_equal(vectors(client, texts), expected)
    assert np.array_equal(vectors(client, texts, encoding_format="float"), expected)
    assert np.array_equal(vectors(client, texts[0]), expected[:1])
    assert np.array_equal(vectors(client, [9906, 1917]), expected[2:3])
    assert np.array_equal(vectors(client, [[9906, 1917]]), expected[2:3])
    short = expected[:, :16] / np.linalg.norm(expected[:, :16], axis=1, keepdims=True)
    assert np.allclose(vectors(client, texts, dimensions=16), short, atol=1e-6)


def test_usage_counts_the_models_tokens(client: openai.OpenAI, embedder: Embedder) -> None:
    texts = ["退款", "退款", "no space left on device"]
    answer = client.embeddings.create(model="local/e5", input=texts)
    assert answer.usage.prompt_tokens == sum(embedder.engine.count(texts))


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": ["a", ""]}, "input[1]"),
        ({"input": ["a", "中" * 3000]}, "input[1]"),
        ({"input": "a", "dimensions": 385}, "dimensions"),
        ({"input": [200_000]}, "input"),
    ],
)
def test_a_bad_request_is_told_by_the_field(
    client: openai.OpenAI, body: dict[str, Any], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as told:
        client.embeddings.create(model="e5", **body)
    assert told.value.param == param


def test_an_over_long_text_is_told_as_openai_tells_it(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as told:
        vectors(client, "short text " * 30_000)
    assert told.value.code == "context_length_exceeded"


def test_poison_harms_its_own_request_alone(client: openai.OpenAI, embedder: Embedder) -> None:
    poison: list[Any] = ["a\0b", "😀" * 50, "\u202e\ufeff", "x" * 5_000_000, "", [10**9], "\n\t "]
    good = [f"refund {number} is late" for number in range(8)]

    def one(given: Any) -> Any:
        try:
            return vectors(client, given)[0]
        except openai.BadRequestError as error:
            return error

    with ThreadPoolExecutor(15) as pool:
        answers = list(pool.map(one, [*poison, *good]))
    assert [isinstance(answer, Exception) for answer in answers[: len(poison)]] == [
        *(False, False, False, True, True, True, False)
    ]
    assert np.array_equal(np.stack(answers[len(poison) :]), embedder.encode(good))


def test_the_document_tells_what_can_be_run(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"(?ms)^```python\n(.*?)^```", DOCUMENT.read_text())
    assert "http://127.0.0.1:8000/v1" in program
    exec(program.replace("http://127.0.0.1:8000/v1", url), {})  # noqa: S102
    assert capsys.readouterr().out.startswith("True ")
