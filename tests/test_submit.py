"""A run that is sent to a cluster of two nodes, from a clean checkout."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scripts.benchmarks.submit import said_by
from scripts.benchmarks.two_nodes import TwoNodes, can_hide
from scripts.days.provider import poison_phrase
from scripts.days.seed_day import write_seed_day
from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from serve.simulated_truth import load_truth
from tests.command import Ended, read_json, read_lines, read_results

pytestmark = pytest.mark.ray

ROOT = Path(__file__).resolve().parents[1]
KEY_VARIABLE = "FUPAN_TEST_NODE_KEY"
KEY = f"key-{secrets.token_hex(16)}"
"""Made anew, since the checkout that is sent holds this file too."""
RECORDS = 120


@dataclass(frozen=True)
class World:
    """A cluster, a clean checkout, and a folder that everybody sees."""

    nodes: TwoNodes
    checkout: Path
    folder: Path

    def submit(self, *arguments: str | Path, token: Path | None = None) -> Ended:
        """The run on the cluster; the key is not in this environment."""
        return self._in_checkout(
            *("scripts/submit", "--address", self.nodes.address, *map(str, arguments)),
            RAY_AUTH_TOKEN_PATH=str(token or self.nodes.token_file),
        )

    def run_here(self, *arguments: str | Path) -> Ended:
        """The same on a cluster of its own: one node."""
        return self._in_checkout("-m", "job", "run", *map(str, arguments), **{KEY_VARIABLE: KEY})

    def _in_checkout(self, *arguments: str, **environment: str) -> Ended:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.checkout,
            env=os.environ | {"RAY_USAGE_STATS_ENABLED": "0"} | environment,
            capture_output=True,
            text=True,
            timeout=480,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if not (ROOT / ".git").exists():
        pytest.skip("a clean checkout is made with git, and this is no checkout")
    folder = tmp_path_factory.mktemp("shared")
    subprocess.run(["git", "clone", "-q", ROOT, folder / "checkout"], check=True)
    (folder / "not-shared").mkdir()
    hidden = folder / "not-shared" if can_hide() else None
    write_seed_day(folder / "day", seed=3, records=RECORDS, poison=0)
    with TwoNodes({KEY_VARIABLE: KEY}, hidden=hidden) as nodes:
        yield World(nodes, folder / "checkout", folder)


def provider(day: Path, **fields: object) -> SimulatedProvider:
    truth = load_truth(day / "provider.json")
    values = {"truth": truth, "time_scale": 50.0, "api_key": KEY, **fields}
    return SimulatedProvider(Settings.model_validate(values))


def run_of(day: str | Path, server: SimulatedProvider, out: Path) -> list[str]:
    """The words that say the same here and there."""
    return [
        *(str(day), "--out", str(out), "--answers", str(out.with_suffix(".db"))),
        *("--base-url", server.base_url, "--model", "simulated", "--timezone", "UTC"),
        *("--api-key-env", KEY_VARIABLE),
    ]


def test_a_day_says_the_same_on_two_nodes_as_on_one(world: World) -> None:
    day = world.folder / "day"
    here, there = world.folder / "here", world.folder / "there"
    fetched = world.folder / "fetched"
    with provider(day) as server:
        on_one = world.run_here(*run_of(day / "input", server, here))
        assert on_one.code == 0, on_one.err
    with provider(day) as server:
        on_two = world.submit("--fetch", fetched, *run_of(day / "input", server, there))
        assert on_two.code == 0, on_two.err + on_two.out
        assert max(server.stats()["good_answers"].values()) == 1
    assert ".git/" not in on_two.err
    assert "packed" in on_two.err
    assert said_by(fetched) == said_by(here)
    assert (fetched / "report.html").read_bytes() == (there / "report.html").read_bytes()
    assert [without_origin(row) for row in read_results(fetched)] == [
        without_origin(row) for row in read_results(here)
    ]
    assert KEY not in on_two.out + on_two.err
    assert not [path for path in world.nodes.files() if KEY.encode() in path.read_bytes()]


def test_more_failures_than_allowed_arrive_as_such(world: World) -> None:
    day = world.folder / "bad-day"
    write_seed_day(day, seed=4, records=60, poison=2)
    out, fetched = world.folder / "poisoned", world.folder / "poisoned-fetched"
    with provider(day, poison=(poison_phrase(),)) as server:
        ended = world.submit("--fetch", fetched, *run_of(day / "input", server, out))
    assert ended.code == 3, ended.err + ended.out
    assert len(read_lines(fetched / "failed.jsonl")) == 2


def test_an_early_stop_arrives_as_such_and_inputs_travel_with_the_checkout(world: World) -> None:
    out, fetched = world.folder / "stopped", world.folder / "stopped-fetched"
    with provider(world.folder / "day", quota_after=1) as server:
        ended = world.submit("--fetch", fetched, *run_of("docs/sample-day", server, out))
    assert ended.code == 4, ended.err + ended.out
    report = read_json(fetched / "report.json")
    assert report["run"]["stopped"] is not None
    assert report["ledger"]["read"] == 300


@pytest.mark.skipif(not can_hide(), reason="this user may not mount")
def test_a_folder_that_the_nodes_do_not_share_is_exit_2(world: World) -> None:
    out = world.folder / "not-shared" / "out"
    ended = world.submit(
        *("docs/sample-day", "--out", out, "--provider", "extractive"),
        *("--answers", world.folder / "sample.db"),
    )
    assert ended.code == 2, ended.err + ended.out
    assert "does not see --out" in ended.out
    assert str(out) in ended.out.splitlines()[-1]


def test_a_wrong_token_is_told(world: World, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("f" * 64)
    ended = world.submit("docs/sample-day", "--out", tmp_path / "out", token=token)
    assert ended.code == 2
    assert "wants another token" in ended.err
    assert "f" * 64 not in ended.err


def without_origin(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if k not in ("via", "represented_by", "attempts")}
