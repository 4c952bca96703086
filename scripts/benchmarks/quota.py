"""One quota for the batch and for who asks online: `fupan run` at full speed beside traffic through
the gateway, on one Ray cluster.

The provider takes 600 requests a minute. First online traffic alone, then the same traffic while
the batch, one record a call, takes all that is left. Seconds are those of the clock.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scripts.benchmarks.checks import Bar, print_table, verdict
from scripts.benchmarks.command import Command
from scripts.benchmarks.gateway_command import Gateway, provider_section
from scripts.benchmarks.gateway_serving import Serving
from scripts.benchmarks.load import body
from scripts.benchmarks.provider import Provider
from scripts.benchmarks.traffic import Client, Seen, at_rate, error_share, percentile
from scripts.benchmarks.workload import CONTEXT, MODEL, Workload, prepare, provider_settings

_RPM = 600
_BURST = 20
_IN_FLIGHT = 20
_RECORDS = 600
"""One call each: a minute and more, with the online traffic beside."""
_ONLINE = 3.0
"""Requests a second."""
_START_SECONDS = 120.0
"""In which the batch has to make its first call."""
_SETTLE_CALLS = 2 * _BURST
"""Calls of the batch before online traffic begins beside it."""
_MOST_LIMITED = 0.03
_LEAST_USED = 0.8
"""Of the quota while both ask: else the batch was not at full speed."""
_HEADER = ("online", "requests", "p50 s", "p99 s", "errors", "429s seen")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone."""
    parser.add_argument(
        "--seconds", type=float, default=40.0, help="of online traffic, alone and beside"
    )


@contextmanager
def _environment(**more: str) -> Iterator[None]:
    """Commands that are started in the block have `more` in their environment."""
    before = dict(os.environ)
    os.environ.update(more)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _token(folder: Path) -> Path:
    """The token without which nobody is let into the cluster."""
    file = folder / "token"
    file.touch(mode=0o600)
    file.write_text(secrets.token_hex(32))
    return file


def _batch(workload: Workload, config: Path, place: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "job", "run", str(workload.input), "--out", str(place / "out")),
        *("--config", str(config), "--answers", str(place / "answers" / "answers.db")),
        *("--mode", "single"),
    ]


def _wait_for_calls(provider: Provider, batch: Command, before: int) -> None:
    """Until the batch is under way. Raises RuntimeError where it is not in time."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and batch.running:
        if provider.stats()["requests"] >= before + _SETTLE_CALLS:
            return
        time.sleep(0.2)
    raise RuntimeError("the batch did not get under way")


def _row(name: str, seen: list[Seen], stats: dict[str, Any]) -> tuple[str, ...]:
    times = (f"{percentile(seen, share):.2f}" for share in (0.5, 0.99))
    limited = stats["by_status"].get("429", 0)
    return (name, f"{len(seen)}", *times, f"{error_share(seen):.1%}", f"{limited}")


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    args.records = min(args.records, _RECORDS)
    workload = prepare(args)
    settings = provider_settings(workload, rpm=_RPM, request_burst=_BURST)
    limits = {"rpm": _RPM * args.scale, "burst": _BURST, "max_concurrency": _IN_FLIGHT}
    place = args.folder / "batch"
    with (
        _environment(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=str(_token(args.folder))),
        Provider(settings) as provider,
        Serving("scripts.benchmarks.quota_cluster", {}, args.folder / "cluster", {}) as cluster,
        _environment(RAY_ADDRESS=cluster.said),
        Gateway(
            args.folder / "gateway",
            provider_section(provider.base_url, (MODEL,), limits=limits, context=CONTEXT),
        ) as gateway,
    ):
        client = Client(f"{gateway.url}/v1/chat/completions", body, gateway.headers)
        alone = at_rate(client, _ONLINE, args.seconds, args.seed)
        first = provider.stats()
        batch_command = _batch(workload, gateway.config, place)
        with Command(batch_command, args.folder / "batch.log") as batch:
            _wait_for_calls(provider, batch, first["requests"])
            second, began = provider.stats(), time.monotonic()
            beside = at_rate(client, _ONLINE, args.seconds, args.seed)
            third, took = provider.stats(), time.monotonic() - began
            lasted = batch.running
            try:
                finished = batch.wait()
            except subprocess.TimeoutExpired:
                return verdict([Bar("the batch ended", 0, "==", 1)])
        last = provider.stats()
    print(finished.tail, end="\n\n")
    print_table(_HEADER, [_row("alone", alone, first), _row("beside the batch", beside, last)])
    used = (third["admitted"] - second["admitted"]) / took / (_RPM * args.scale / 60)
    rise = percentile(beside, 0.99) - percentile(alone, 0.99)
    limited = last["by_status"].get("429", 0) / last["requests"]
    print()
    return verdict(
        [
            Bar("exit code of the batch", finished.exit_code, "==", 0),
            Bar("the batch lasted as long as the online traffic", lasted, "==", 1),
            Bar("share of the quota used by both", round(used, 3), ">=", _LEAST_USED),
            Bar("share of 429s", round(limited, 4), "<=", _MOST_LIMITED),
            Bar("rise of the online p99, seconds", round(rise, 2), "<=", one_call(alone)),
            Bar("online errors", error_share([*alone, *beside]), "==", 0),
        ]
    )


def one_call(alone: list[Seen]) -> float:
    """What one call takes, in seconds, to two decimals: the median of the traffic alone."""
    return round(percentile(alone, 0.5), 2)
