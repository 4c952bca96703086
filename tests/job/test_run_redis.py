"""A run whose paid answers are in a Redis that is killed, and started again, in the middle."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from scripts.days.seed_day import write_seed_day
from serve.ask.answers_redis import PASSWORD
from serve.ask.answers_redis_layout import AGES
from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from serve.simulated_truth import load_truth
from tests.command import fupan, read_json
from tests.redis_server import RedisServer, redis_server

pytestmark = [pytest.mark.ray, pytest.mark.slow]

RECORDS = 150
SECRET = "s3cret-of-redis"
GONE_SECONDS = 1.5


def test_a_run_outlives_a_restart_of_its_redis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv(PASSWORD, SECRET)
    write_seed_day(tmp_path, seed=6, records=RECORDS, poison=0)
    settings = Settings(truth=load_truth(tmp_path / "provider.json"), time_scale=10.0)
    with (
        redis_server(tcp=True, password=SECRET) as server,
        SimulatedProvider(settings) as provider,
    ):

        def run(out: str) -> dict[str, int]:
            ended = fupan(
                *("run", tmp_path / "input", "--out", tmp_path / out, "--answers", server.url),
                *("--base-url", provider.base_url, "--model", "simulated", "--pack-tokens", "500"),
            )
            assert ended.code == 0, ended.err
            assert SECRET not in ended.out + ended.err
            assert SECRET not in (tmp_path / out / "run.json").read_text()
            ledger: dict[str, int] = read_json(tmp_path / out / "ledger.json")
            return ledger

        restarting = threading.Thread(target=restart_in_the_middle, args=(server,))
        restarting.start()
        ledger = run("first")
        restarting.join()
        assert ledger["answered"] + ledger["folded"] == RECORDS
        asked = ledger["calls"]["requests"]  # type: ignore[index]
        assert asked > 10
        again = run("again")
        assert again["recalled"] == ledger["answered"]
        assert again["calls"]["requests"] == 0  # type: ignore[index]


def restart_in_the_middle(server: RedisServer) -> None:
    """Kill it as soon as it holds some answers."""
    with server.client() as client:
        while client.zcard(AGES) == 0:
            time.sleep(0.01)
    server.kill()
    time.sleep(GONE_SECONDS)
    server.start()
