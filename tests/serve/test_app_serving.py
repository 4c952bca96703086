"""`fupan serve` as a process, with two replicas: what clients see of it, also while replicas come
and go.

The tests of this file share one cluster, and the last one ends it.
"""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from serve.app import APPLICATION, application, autoscaling
from serve.gateway.settings import GatewaySettings
from tests.command import fupan
from tests.serve.gateway_process import Process, ask, gateway_process, load, wait_until
from tests.serve.slow_provider import MODEL, PIECES, SlowProvider, slow_provider

pytestmark = [pytest.mark.ray, pytest.mark.timeout(900)]

IN_FLIGHT, WAITING = 12, 12
"""Of one replica."""
OFTEN = {"RAY_SERVE_HANDLE_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "0.5"}
"""How busy replicas are, in seconds; by default 10."""


@pytest.fixture(scope="module")
def provider() -> Iterator[SlowProvider]:
    with slow_provider() as found:
        yield found


@pytest.fixture(scope="module")
def config(provider: SlowProvider) -> dict[str, Any]:
    limits = {"max_concurrency": 200}
    return {
        "providers": {
            "main": {"base_url": provider.base_url, "models": [MODEL], "limits": limits},
        },
        "serve": {"admission": {"in_flight": IN_FLIGHT, "waiting": WAITING}},
    }


@pytest.fixture(scope="module")
def gateway(config: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("gateway")
    with gateway_process(config, folder, "--replicas", "2", **OFTEN) as found:
        yield found


@pytest.fixture(scope="module")
def joined(gateway: Process) -> Iterator[Any]:
    """Ray Serve, from another process of the same cluster."""
    import ray
    from ray import serve as ray_serve
    from ray._private import ray_constants
    from ray._private.authentication.authentication_token_setup import (
        maybe_enable_token_auth_if_token_available,
    )

    maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
    with pytest.MonkeyPatch.context() as patch:
        # As `job.cluster` joins one that listens on the loopback interface alone.
        patch.setattr(ray_constants, "ENABLE_RAY_CLUSTER", False)
        ray.init(address=gateway.cluster, namespace="fupan", log_to_driver=False)
    yield ray_serve
    ray.shutdown()


def test_openais_client_and_curl_are_answered(gateway: Process) -> None:
    client = openai.OpenAI(base_url=gateway.url, api_key="unused", max_retries=0)
    names = [model.id for model in client.models.list()]
    assert names == [f"main/{MODEL}", MODEL]
    message: Any = {"role": "user", "content": "hello"}
    answer = client.chat.completions.with_raw_response.create(model=MODEL, messages=[message])
    assert answer.parse().choices[0].message.content == "done"
    assert answer.headers["x-fupan-model"] == f"main/{MODEL}"
    assert len(answer.headers.get_list("x-request-id")) == 1
    pieces = client.chat.completions.create(model=MODEL, messages=[message], stream=True)
    said = [piece.choices[0].delta.content for piece in pieces if piece.choices]
    assert "".join(filter(None, said)) == "".join(f"{piece} " for piece in range(PIECES))
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="nobody", messages=[message])
    # The line that it prints, as it is.
    line = gateway.said.partition("try it: ")[2].partition("\n")[0]
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=True, timeout=60)
    assert orjson.loads(done.stdout)["choices"][0]["message"]["content"] == "done"


def test_any_replica_tells_what_all_have_measured(gateway: Process) -> None:
    clients = 8
    with load(gateway.url, clients) as seen:
        wait_until(lambda: seen.answered > 10 * clients)

    def told() -> dict[str, float]:
        """Answered requests by replica."""
        text = httpx.get(f"{gateway.root}/metrics").text
        return {
            sample.labels["replica"]: sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == "fupan_requests_total" and sample.labels["status"] == "200"
        }

    # They tell each other every few seconds.
    wait_until(lambda: len(told()) == 2 and sum(told().values()) >= seen.answered)


async def test_what_needs_no_model_never_waits_behind_a_slow_one(
    gateway: Process, provider: SlowProvider
) -> None:
    taken = 2 * (IN_FLIGHT + WAITING)
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=300, limits=limits) as http:
        before = provider.ended
        slow = [asyncio.create_task(ask(http, gateway.url, "wait 4")) for _ in range(taken + 10)]
        refused, _ = await asyncio.wait(slow, return_when=asyncio.FIRST_COMPLETED)
        for path in ("/healthz", "/readyz", "/v1/models") * 3:
            answer = await http.get(gateway.root + path)
            assert answer.status_code == 200
        assert provider.ended == before
        said = await asyncio.gather(*slow)
    failed = [each for each in said if each is not None]
    assert refused
    assert {status for status, _ in failed} == {503}
    assert all("gateway_overloaded" in text for _, text in failed)


def test_a_replica_that_dies_takes_only_its_own_requests_along(gateway: Process) -> None:
    clients = 8
    with load(gateway.url, clients) as seen:
        wait_until(lambda: seen.answered > 2 * clients)
        one = gateway.replicas()[0]
        one.kill()
        before = seen.answered
        wait_until(lambda: seen.answered > before + 5 * clients)
        wait_until(lambda: len(gateway.replicas()) == 2 and one not in gateway.replicas())
        before = seen.answered
        wait_until(lambda: seen.answered > before + 5 * clients)
    print(f"answered {seen.answered}, failed {[each[0] for each in seen.failed]}")
    assert len(seen.failed) <= clients
    for status, text in seen.failed:
        assert status in (200, 500), text  # a stream that had begun, and an answer that had not
        assert "gateway_replica_lost" in text


def test_a_rolling_update_fails_no_request(
    gateway: Process, joined: Any, provider: SlowProvider, config: dict[str, Any]
) -> None:
    config["serve"]["names"] = {"new": {"use": [f"main/{MODEL}"]}}
    settings = GatewaySettings.model_validate(config)
    old = gateway.replicas()
    with load(gateway.url, 8) as seen:
        wait_until(lambda: seen.answered > 16)
        joined.run(application(settings, 2), name=APPLICATION, route_prefix="/")
        wait_until(lambda: not any(each.is_running() for each in old))
        before = seen.answered
        wait_until(lambda: seen.answered > before + 40)
    print(f"answered {seen.answered}")
    assert not seen.failed
    listed = httpx.get(f"{gateway.url}/models").json()["data"]
    assert "new" in [each["id"] for each in listed]


def test_scaling_down_under_load_fails_no_request(
    gateway: Process, joined: Any, config: dict[str, Any]
) -> None:
    settings = GatewaySettings.model_validate(config)
    quick = autoscaling(1, 3, 2, up_after=1, up_every=2, down_after=2, down_every=2)
    with load(gateway.url, 6) as seen:
        joined.run(application(settings, quick), name=APPLICATION, route_prefix="/")
        wait_until(lambda: len(gateway.replicas()) == 1)
        before = seen.answered
        wait_until(lambda: seen.answered > before + 30)
    print(f"answered {seen.answered}")
    assert not seen.failed
    # And up again: three are wanted for 22 in flight.
    with load(gateway.url, 22, 0.5) as more:
        wait_until(lambda: len(gateway.replicas()) == 3)
    assert not more.failed


def test_of_a_cluster_that_it_joined_it_ends_nothing_but_itself(
    gateway: Process, joined: Any, config: dict[str, Any], tmp_path: Path
) -> None:
    class Other:
        def __call__(self) -> str:
            return "still here"

    joined.run(joined.deployment(Other).bind(), name="other", route_prefix="/other")
    environment = {"RAY_ADDRESS": gateway.cluster, "RAY_AUTH_MODE": "token"}
    file = tmp_path / "second.yaml"
    file.write_bytes(orjson.dumps(config))
    refused = fupan("serve", "--config", file, **environment)
    assert refused.code == 2
    assert "runs in this cluster already" in refused.err
    assert httpx.get(f"{gateway.url}/models").status_code == 200
    joined.delete(APPLICATION)
    with gateway_process(config, tmp_path, **environment) as second:
        assert second.url == gateway.url  # where Serve listens already
        assert httpx.get(f"{second.url}/models").status_code == 200
        assert second.end() == 0
    gone = httpx.get(f"{gateway.url}/models")
    assert gone.status_code == 503
    assert gone.json()["error"]["code"] == "gateway_draining"
    assert httpx.get(f"{gateway.root}/other").text == "still here"


def test_what_is_in_flight_is_answered_before_it_ends(
    config: dict[str, Any], tmp_path: Path, provider: SlowProvider
) -> None:
    said: list[tuple[int, str] | None] = []

    async def both(url: str) -> None:
        async with httpx.AsyncClient(timeout=300) as http:
            words = "wait 4"
            said.extend(
                await asyncio.gather(ask(http, url, words), ask(http, url, words, stream=True))
            )

    # Behind the fast ingress, which is the harder case: a proxy of its own that is no actor.
    with gateway_process(config, tmp_path, "--fast", **_FAST_PORTS) as gateway:
        begun = provider.begun
        asking = threading.Thread(target=lambda: asyncio.run(both(gateway.url)))
        asking.start()
        wait_until(lambda: provider.begun == begun + 2)
        assert gateway.end() == 0
        asking.join()
        *_, first, last = gateway.errors.read_text().splitlines()
    assert said == [None, None]
    assert first.startswith("ending: the 2 requests that are in flight get their answers first")
    assert last == "ended"


_FAST_PORTS = {
    "RAY_SERVE_HAPROXY_STATS_PORT": "18404",
    "RAY_SERVE_HAPROXY_METRICS_PORT": "19101",
}
