"""The cluster's own models on Ray Serve: what clients of the gateway see while processes die,
models are loaded, and others cannot be.

The tests of this file share one cluster.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import openai
import psutil
import pytest
import ray
import yaml
from ray import serve as ray_serve
from ray.serve.context import _get_global_client
from ray.serve.schema import ApplicationStatus, ServeDeploySchema

from serve import app
from serve.app import APPLICATION as GATEWAY
from serve.app import application as gateway_application
from serve.gateway.settings import GatewaySettings
from serve.models.app import placement, targets
from serve.models.calls import APPLICATION, DEPLOYMENT
from tests.serve.gateway_process import wait_until
from tests.serve.tiny_models import LOADER

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]

POOL = {"one": {"generator": "tiny"}, "two": {"generator": "tiny"}, "gone": {"embedder": "missing"}}
SETTINGS = GatewaySettings.model_validate(
    {
        "models": {
            "writer": {"generator": "tiny", "replicas": 2, "gpus": 0.25},
            "single": {"generator": "tiny", "queue": 1, "gpus": 0},
            "broken": {"embedder": "missing", "gpus": 0},
            "rare": {"pool": POOL, "loaded": 1, "gpus": 0},
            "sleepy": {"embedder": "tiny", "gpus": 0, "idle_to_zero": 2},
        },
        "serve": {
            "names": {
                "chat": {"use": ["local/two", "local/writer"]},
                "vectors": {"use": ["local/broken", "local/sleepy"]},
            }
        },
    }
)
ENVIRONMENT = {
    # How often it is said how busy models are, in seconds; by default 10.
    "RAY_SERVE_HANDLE_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "0.5",
    # On a busy machine Ray's own 30 are not enough.
    "RAY_raylet_start_wait_time_s": "120",
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Of a gateway with the models beside it, all of which are loaded that can be, in a cluster
    that is told that it has a GPU."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        ray.init(
            address="local",
            namespace="fupan",
            num_cpus=2,
            num_gpus=1,
            include_dashboard=False,
            log_to_driver=False,
        )
        try:
            ray_serve.start(http_options={"host": "127.0.0.1", "port": port})
            placements = {name: placement(entry) for name, entry in SETTINGS.models.items()}
            ray_serve.run_many(
                targets(SETTINGS, placements, LOADER), wait_for_applications_running=False
            )
            ray_serve.run(gateway_application(SETTINGS), name=GATEWAY, route_prefix="/")
            wait_until(
                lambda: all(
                    status(name) == ApplicationStatus.RUNNING
                    for name in SETTINGS.models
                    if name != "broken"
                )
            )
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            ray_serve.shutdown()
            ray.shutdown()


def status(name: str) -> ApplicationStatus:
    """Of the application of an entry of `models`."""
    return ray_serve.status().applications[APPLICATION.format(name)].status


def replicas(name: str) -> list[psutil.Process]:
    """The processes of an entry of `models`."""
    sought = f"ray::ServeReplica:{APPLICATION.format(name)}:{DEPLOYMENT}"
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if sought in " ".join(process.cmdline()):
                found.append(process)
    return found


def client(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=url, api_key="unused", max_retries=0)


def ask(url: str, model: str, content: str, **more: Any) -> Any:
    """A chat, as OpenAI's client gives it."""
    messages: Any = [{"role": "user", "content": content}]
    return client(url).chat.completions.create(model=model, messages=messages, **more)


def test_a_process_that_is_killed_under_load_costs_no_whole_answer(url: str) -> None:
    """A stream that had begun is told that it broke; all else is answered by the other process."""
    said: list[tuple[bool, int, str]] = []
    killed, enough = asyncio.Event(), 200

    async def one(http: httpx.AsyncClient, stream: bool) -> None:
        body = {"model": "writer", "stream": stream}
        body["messages"] = [{"role": "user", "content": "wait 0.05 and tell"}]
        while not killed.is_set() or len(said) < enough:
            answer = await http.post("chat/completions", json=body)
            said.append((stream, answer.status_code, answer.text))
            if len(said) == enough // 2:
                replicas("writer")[0].kill()
                killed.set()

    async def crowd() -> None:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as http:
            await asyncio.gather(*(one(http, number % 2 == 0) for number in range(12)))

    asyncio.run(crowd())
    wholes = [(code, text) for stream, code, text in said if not stream]
    assert [text for code, text in wholes if code != 200] == []
    broken = [text for stream, _, text in said if stream and not text.endswith("[DONE]\n\n")]
    print(f"answered {len(said) - len(broken)}, streams broken {len(broken)}")
    assert len(broken) <= 6
    assert all("did not answer, or the connection to it was lost" in text for text in broken)
    wait_until(lambda: len(replicas("writer")) == 2)


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_frees_its_place(url: str, stream: bool) -> None:
    """The model takes one request at a time, and the held one would be answered never."""

    async def leave() -> None:
        async with httpx.AsyncClient(base_url=url, timeout=300) as http:
            body = {"model": "single", "stream": stream}
            body["messages"] = [{"role": "user", "content": "hold on"}]
            held = asyncio.create_task(http.post("chat/completions", json=body))
            while not await asyncio.to_thread(is_full):
                pass
            held.cancel()

    def is_full() -> bool:
        body = {"model": "single", "messages": [{"role": "user", "content": "hello"}]}
        answer = httpx.post(f"{url}/chat/completions", json=body, timeout=300)
        assert answer.status_code in (200, 503)
        return answer.status_code == 503

    asyncio.run(leave())
    wait_until(lambda: not is_full())


def test_of_a_burst_one_is_taken_and_the_others_are_told_at_once(url: str) -> None:
    """Through Ray Serve. The model takes one request at a time, and would answer it never."""
    said: list[httpx.Response] = []

    async def crowd() -> None:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=url, timeout=300, limits=limits) as http:
            body = {"model": "single", "messages": [{"role": "user", "content": "hold on"}]}
            held = {
                asyncio.create_task(http.post("chat/completions", json=body)) for _ in range(99)
            }
            while len(held) > 1:
                done, held = await asyncio.wait(held, return_when=asyncio.FIRST_COMPLETED)
                said.extend(each.result() for each in done)
            await asyncio.to_thread(wait_until, lambda: running(url, "single") == 1)
            held.pop().cancel()

    asyncio.run(crowd())
    assert {each.status_code for each in said} == {503}
    assert {each.headers["retry-after"] for each in said} == {"2"}
    wait_until(lambda: running(url, "single") == 0)


def running(url: str, model: str) -> float | None:
    """Requests that the model answers, as Prometheus is told; None: it is not told yet."""
    told = httpx.get(f"{url.removesuffix('/v1')}/metrics").text
    found = re.findall(rf'^fupan_model_running{{model="{model}".*}} ([0-9.]+)$', told, re.MULTILINE)
    return sum(map(float, found)) if found else None


def test_a_model_that_cannot_be_loaded_takes_no_other_along(url: str) -> None:
    wait_until(lambda: status("broken") == ApplicationStatus.DEPLOY_FAILED)
    with pytest.raises(openai.InternalServerError, match="local/broken cannot answer") as caught:
        client(url).embeddings.create(model="broken", input="hello")
    assert caught.value.status_code == 503
    assert ask(url, "writer", "still here").choices[0].message.content == "still here"


def test_another_model_answers_for_one_that_cannot(url: str) -> None:
    wait_until(lambda: status("broken") == ApplicationStatus.DEPLOY_FAILED)
    vectors = client(url).embeddings.with_raw_response.create(model="vectors", input="hello")
    assert vectors.headers["x-fupan-model"] == "local/sleepy"
    body = {"model": "chat", "messages": [{"role": "user", "content": "hello"}]}
    answer = httpx.post(f"{url}/chat/completions", json=body, timeout=300)
    # By the other where a busy machine takes seconds to load the first.
    assert answer.json()["choices"][0]["message"]["content"] == "hello"


def test_replicas_share_a_gpu_and_who_asked_for_none_sees_none(url: str) -> None:
    assert ask(url, "writer", "hello").gpus == "0"
    assert ask(url, "single", "hello").gpus == ""
    assert ray.available_resources()["GPU"] == 0.5


def test_models_of_a_pool_are_loaded_when_they_are_asked_for(url: str) -> None:
    def made_by(model: str) -> str:
        """Which time it was loaded."""
        return str(ask(url, model, "hello").system_fingerprint)

    first = made_by("one")
    assert made_by("one") == first
    assert made_by("two") != first
    assert made_by("one") != first  # the other took its place
    with pytest.raises(openai.InternalServerError, match="local/gone cannot answer") as caught:
        client(url).embeddings.create(model="gone", input="hello")
    assert (caught.value.status_code, caught.value.code) == (503, "provider_unavailable")
    assert 50 < int(caught.value.response.headers["retry-after"]) <= 60
    assert made_by("two") != first


def test_a_model_that_makes_room_answers_to_the_end_first(url: str) -> None:
    with ask(url, "one", "wait 1 and tell all", stream=True) as chunks:
        begun = next(chunks)
        other = ask(url, "two", "hello")
        rest = [each.choices[0].delta.content for each in chunks if each.choices]
    assert begun.choices[0].delta.content == "wait "
    assert rest[:4] == ["1 ", "and ", "tell ", "all "]
    assert other.choices[0].message.content == "hello"


def test_a_model_that_nobody_asks_for_has_no_process_and_comes_back(url: str) -> None:
    ask_it = client(url).embeddings.create
    assert ask_it(model="sleepy", input="hello").usage.prompt_tokens == 1
    wait_until(lambda: not replicas("sleepy"))
    assert ask_it(model="sleepy", input="wake up").usage.prompt_tokens == 2
    assert len(replicas("sleepy")) == 1


def test_what_models_measure_is_told_by_the_gateway(url: str) -> None:
    wait_until(lambda: running(url, "writer") is not None)
    ask(url, "writer", "hello")
    told = httpx.get(f"{url.removesuffix('/v1')}/metrics").text
    assert 'fupan_tokens_total{kind="out",model="writer",provider="local"' in told


def test_the_model_of_the_config_file_for_development_is_deployed_by_it(url: str) -> None:
    file = Path(app.__file__).with_name("development.yaml")
    config = yaml.safe_load(file.read_text(encoding="utf-8"))
    (model,) = config["applications"][1:]
    # What `serve deploy` asks the controller for.
    schema = ServeDeploySchema.model_validate({"applications": [model]})
    _get_global_client().deploy_apps(schema)
    wait_until(lambda: ray_serve.status().applications.get(model["name"]) is not None)
    wait_until(lambda: status(model["args"]["model"]) == ApplicationStatus.RUNNING)
