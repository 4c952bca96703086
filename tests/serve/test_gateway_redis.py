"""Two gateways that share a Redis, as two replicas do, and what they measure."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from serve.cache.redis_link import PAUSE_SECONDS
from tests.redis_server import RedisServer, redis_server
from tests.serve.gateway_world import World, gateway_world, provider_at
from tests.serve.scripted_upstream import Upstream, chunks, streamed, upstream_world

pytestmark = pytest.mark.slow

EXACT = {"x-fupan-cache": "exact"}
PASSWORD = "s3cret-of-redis"
VARIABLE = "TEST_GATEWAY_REDIS"
HTTP = httpx.Client(timeout=60)


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server(tcp=True, password=PASSWORD) as running:
        yield running


@pytest.fixture(scope="module")
def running(server: RedisServer) -> Iterator[tuple[Upstream, World, World]]:
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patched:
        url = f"redis://:{PASSWORD}@127.0.0.1:{server.port}/0"
        patched.setenv(VARIABLE, url)
        upstream = stack.enter_context(upstream_world())
        main = provider_at(upstream.url, prices={"currency": "CNY", "input": 2, "output": 10})
        worlds = [
            stack.enter_context(gateway_world({"main": main}, {"redis_env": VARIABLE}))
            for _ in range(2)
        ]
        yield upstream, worlds[0], worlds[1]


@pytest.fixture(autouse=True)
def clean(running: tuple[Upstream, World, World], server: RedisServer) -> None:
    server.clear()
    running[0].bodies.clear()


def ask(world: World, text: str, headers: dict[str, str], **fields: Any) -> httpx.Response:
    messages = [{"role": "user", "content": text}]
    body = {"model": "simulated", "temperature": 0, "messages": messages, **fields}
    return HTTP.post(f"{world.base_url}/chat/completions", json=body, headers=headers)


def measured(world: World) -> dict[tuple[str, str], float]:
    """By name, and the value of its second label (in the order of their names) if it has some."""
    text = HTTP.get(f"{world.url}/metrics").text
    found: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = [v for k, v in sorted(sample.labels.items()) if k not in ("endpoint", "le")]
            found[sample.name, "/".join(labels)] = sample.value
    return found


def test_what_one_has_kept_the_other_answers(running: tuple[Upstream, World, World]) -> None:
    upstream, one, two = running
    first = ask(one, "shared", EXACT)
    second = ask(two, "shared", EXACT)
    assert (first.headers["x-fupan-cache"], second.headers["x-fupan-cache"]) == ("miss", "exact")
    assert first.json() == second.json()
    assert upstream.calls == 1


def test_an_idempotency_key_holds_for_both(running: tuple[Upstream, World, World]) -> None:
    upstream, one, two = running
    headers = {"idempotency-key": "order-1"}
    first, second = ask(one, "once", headers), ask(two, "once", headers)
    assert second.headers["x-fupan-cache"] == "repeated"
    assert first.json() == second.json()
    assert upstream.calls == 1
    other = ask(two, "another", headers)
    assert (other.status_code, other.json()["error"]["code"]) == (400, "idempotency_key_reused")


def test_a_restart_of_redis_fails_no_request(
    running: tuple[Upstream, World, World], server: RedisServer
) -> None:
    _, one, two = running
    kept = [f"before {number}" for number in range(30)]
    for text in kept:
        assert ask(one, text, EXACT).headers["x-fupan-cache"] == "miss"
    stop, answers = threading.Event(), list[httpx.Response]()

    def keep_asking(world: World) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            answers.append(ask(world, f"{world.url} {number % 5}", EXACT))

    threads = [threading.Thread(target=keep_asking, args=(world,)) for world in (one, two)]
    for thread in threads:
        thread.start()
    server.kill()
    before = len(answers)
    while len(answers) < before + 20:
        stop.wait(0.01)
    server.start()
    # It is asked again when both have left it alone for a while.
    for text in kept:
        if ask(two, text, EXACT).headers["x-fupan-cache"] == "exact":
            break
        stop.wait(4 * PAUSE_SECONDS / len(kept))
    else:
        pytest.fail("what was kept before the restart is not found again")
    stop.set()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.headers["x-fupan-cache"] for answer in answers} == {"miss", "exact"}
    assert PASSWORD not in "".join(answer.text for answer in answers)


def test_what_a_request_took_can_be_read(running: tuple[Upstream, World, World]) -> None:
    upstream, one, _ = running
    before = measured(one)
    upstream.planned.append(streamed(chunks("one", "two", "three")))
    assert ask(one, "streamed", {}, stream=True).status_code == 200
    assert ask(one, "whole", EXACT).status_code == 200
    assert ask(one, "whole", EXACT).status_code == 200
    assert ask(one, "nobody", {}, model="nobody").status_code == 404
    after = measured(one)

    def more(name: str, labels: str = "") -> float:
        return after[name, labels] - before.get((name, labels), 0.0)

    assert more("fupan_requests_total", "200") == 3
    assert more("fupan_requests_total", "404") == 1
    assert [more("fupan_cache_total", each) for each in ("off", "miss", "exact")] == [1, 1, 1]
    assert more("fupan_time_to_first_token_seconds_count", "simulated/main") == 1
    assert more("fupan_upstream_last_byte_seconds_count", "simulated/main") == 2
    assert more("fupan_gateway_seconds_count") == 3
    assert more("fupan_serialise_seconds_count") == 2
    assert 0 < more("fupan_gateway_seconds_sum") < more("fupan_request_seconds_sum")
    assert more("fupan_tokens_total", "in/simulated/main") > 0
    assert more("fupan_cost_total", "CNY/simulated/main") > 0
    assert after["fupan_requests_in_flight", ""] == 0
