"""The embedder from one replica to four and back, by its policy, under a load that rises and falls.

`fupan serve` with an embedder, the bundled one by default, and a gateway before it; clients that
each ask for one text after the other. Its pace is shortened, so that a picture of minutes shows
what takes an hour. On one machine all replicas share its cores: it shows that they come and go as
the load does and that no request fails meanwhile, not that four are four times as fast.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
import psutil

from scripts.benchmarks.checks import Bar, print_table, verdict
from scripts.benchmarks.gateway_command import Gateway, provider_section
from serve.models.settings import BUNDLED

CURVE = (2, 6, 12, 18, 18, 12, 6, 2, 2)
"""Clients at once in each step."""
FEWEST, MOST = 1, 4
IN_FLIGHT = 4
"""Requests that one replica is wanted for."""
PACE = {
    "up_after": 5,
    "up_most": 1,
    "up_every": 10,
    "down_after": 10,
    "down_most": 1,
    "down_every": 10,
}
"""Seconds and counts; by default up after 10 s and down after 300."""
_OFTEN = {"RAY_SERVE_HANDLE_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "1"}
"""How often the gateway says how busy a model is, in seconds; by default 10."""
MEAN_OF = 10
"""Seconds whose mean is drawn of the answers."""
_MODEL = "e5"
_PROCESS = f"ray::ServeReplica:fupan-model-{_MODEL}:Model"
_START_SECONDS = 180.0
_BACK_SECONDS = 120.0
"""For the last replicas to go when the load is gone."""
_TEXT = "order {} was paid twice and the refund has not come: what went wrong, and who is told?"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone."""
    parser.add_argument("--seconds", type=float, default=30.0, help="of each step (default 30)")
    parser.add_argument(
        "--model", default=BUNDLED, help=f"whatever `embedder` may be (default {BUNDLED})"
    )
    parser.add_argument(
        "--gpus", type=float, help="the share of a GPU of a replica (default as in fupan.yaml)"
    )
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="write the picture there too (SVG)"
    )


def run(args: argparse.Namespace) -> int:
    """Load it, look at it every second, draw what was seen."""
    models = {
        _MODEL: {
            "embedder": args.model,
            "gpus": args.gpus,
            "replicas": {"min": FEWEST, "max": MOST},
            "in_flight": IN_FLIGHT,
            "pace": PACE,
        }
    }
    # Nobody is there, and nobody is asked.
    provider = provider_section("http://127.0.0.1:9/v1", ("none",))
    with _environment(), Gateway(args.folder, provider, models=models) as gateway:
        seen = asyncio.run(_watch(gateway, args.seconds))
    _tell(seen, args.seconds)
    for file in filter(None, (args.folder / "models-scale.svg", args.picture)):
        file.write_bytes(draw(seen.looks))
        print(f"drawn: {file}")
    most = max(look.replicas for look in seen.looks)
    return verdict(
        [
            Bar("failed requests", len(seen.failed), "==", 0),
            Bar("replicas at the highest load", most, "==", MOST),
            Bar("replicas at the end", seen.looks[-1].replicas, "==", FEWEST),
        ]
    )


@dataclass(frozen=True, slots=True)
class Look:
    """One second of it: `at`, seconds since the load began; `clients` at once; processes of the
    model; `answers` in that second."""

    at: float
    clients: int
    replicas: int
    answers: int


@dataclass(slots=True)
class Seen:
    """Everything: a look each second, what each answer took by its time, and what failed."""

    looks: list[Look] = field(default_factory=list)
    took: list[tuple[float, float]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


async def _watch(gateway: Gateway, seconds: float) -> Seen:
    """The whole curve, and after it until the replicas are gone that came with it."""
    seen = Seen()
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(
        base_url=gateway.url, headers=gateway.headers, timeout=120, limits=limits
    ) as http:
        await _until_loaded(http)
        began = time.monotonic()
        clients: list[asyncio.Task[None]] = []
        wanted = CURVE[0]

        def now() -> float:
            return time.monotonic() - began

        async def client(number: int) -> None:
            asked = 0
            while number < wanted:
                asked += 1
                at = now()
                text = _TEXT.format(f"{number}-{asked}")
                try:
                    body = {"model": _MODEL, "input": text}
                    answer = await http.post("/v1/embeddings", json=body)
                except httpx.HTTPError as error:
                    seen.failed.append(repr(error))
                    continue
                if answer.status_code == 200:
                    seen.took.append((at, now() - at))
                else:
                    seen.failed.append(answer.text)

        async def look(until: float, back: bool = False) -> None:
            while now() < until and not (back and _replicas(gateway.pid) == FEWEST):
                answered = len(seen.took)
                await asyncio.sleep(1)
                replicas = await asyncio.to_thread(_replicas, gateway.pid)
                seen.looks.append(Look(now(), wanted, replicas, len(seen.took) - answered))

        for step, count in enumerate(CURVE, start=1):
            wanted = count
            clients = [each for each in clients if not each.done()]
            running = len(clients)
            clients += [asyncio.create_task(client(number)) for number in range(running, count)]
            await look(step * seconds)
        await look(now() + _BACK_SECONDS, back=True)
        wanted = 0
        await asyncio.gather(*clients)
    return seen


async def _until_loaded(http: httpx.AsyncClient) -> None:
    """Raises RuntimeError where the model does not answer in time."""
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        answer = await http.post("/v1/embeddings", json={"model": _MODEL, "input": "hello"})
        if answer.status_code == 200:
            return
        await asyncio.sleep(1)
    raise RuntimeError(f"the model does not answer: {answer.text}")


def _replicas(root: int) -> int:
    """The model's processes."""
    count = 0
    with suppress(psutil.NoSuchProcess):
        for process in psutil.Process(root).children(recursive=True):
            with suppress(psutil.Error):
                count += _PROCESS in " ".join(process.cmdline())
    return count


@contextmanager
def _environment() -> Iterator[None]:
    os.environ.update(_OFTEN)
    try:
        yield
    finally:
        for name in _OFTEN:
            del os.environ[name]


def _tell(seen: Seen, seconds: float) -> None:
    rows = []
    for step, clients in enumerate(CURVE):
        start, end = step * seconds, (step + 1) * seconds
        looks = [look for look in seen.looks if start < look.at <= end]
        took = [each for at, each in seen.took if start < at <= end]
        if looks and took:
            rows.append(
                (
                    f"{start:.0f} s",
                    str(clients),
                    f"{looks[0].replicas} to {looks[-1].replicas}",
                    f"{len(took) / seconds:.1f}",
                    f"{np.percentile(took, 50):.2f}",
                    f"{np.percentile(took, 99):.2f}",
                )
            )
    print_table(("from", "clients", "replicas", "texts/s", "p50 s", "p99 s"), rows)
    print(f"answered {len(seen.took)}, failed {len(seen.failed)}")


def draw(looks: Sequence[Look]) -> bytes:
    """Clients and answers a second, and the replicas on an axis of their own, over the time."""
    import pygal

    def points(name: str, mean_of: int = 1) -> list[tuple[float, float]]:
        values = [getattr(look, name) for look in looks]
        means = [np.mean(values[max(0, at - mean_of + 1) : at + 1]) for at in range(len(values))]
        return [(round(look.at, 1), float(mean)) for look, mean in zip(looks, means, strict=True)]

    most = max(*CURVE, *(value for _, value in points("answers", MEAN_OF)))
    step = math.ceil(most / (MOST + 1))
    drawing = pygal.XY(
        js=(),
        width=900,
        height=420,
        show_dots=False,
        title="The embedder's replicas under a load that rises and falls",
        x_title="seconds",
        value_formatter=lambda value: f"{value:.0f}",
        # As many steps on both axes.
        range=(0, step * (MOST + 1)),
        y_labels=[step * each for each in range(MOST + 2)],
        secondary_range=(0, MOST + 1),
        legend_at_bottom=True,
        legend_at_bottom_columns=3,
        truncate_legend=-1,
    )
    drawing.add("clients at once", points("clients"))
    drawing.add("texts a second", points("answers", MEAN_OF))
    drawing.add("replicas (right axis)", points("replicas"), secondary=True)
    found: bytes = drawing.render()
    return found
