"""Three proxies before one provider with a limit and faults: one with a thread per request, one
asynchronous, and the gateway.

The provider takes 120 requests a minute and 2 % of its answers are faults, in simulated time. Under
the limit clients come by chance at 70 % of it; over it there are more clients at once than it
answers, each asking again as soon as it is answered. Waits of the gateway before it tries again are
in seconds of the clock, as are all figures.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson

from scripts.benchmarks.checks import Bar, print_table, verdict
from scripts.benchmarks.gateway_command import Gateway, provider_section
from scripts.benchmarks.gateway_serving import Serving
from scripts.benchmarks.provider import Provider
from scripts.benchmarks.traffic import (
    Client,
    Seen,
    at_once,
    at_rate,
    error_share,
    good_per_second,
    percentile,
)
from scripts.benchmarks.workload import MODEL
from serve.simulated import Settings

_RPM = 120
_BURST = 20
_IN_FLIGHT = 20
_SCALE = 10.0
"""Simulated seconds in a real one: 20 requests a second."""
_FAULTS = {"server_error": 0.01, "reset": 0.01}
_UNDER = 0.7
"""Of the limit."""
_CLIENTS = 64
"""At once, over the limit."""
_NAIVE_WAIT = 1.0
"""Simulated seconds before a naive proxy tries again."""
_PATH = "/v1/chat/completions"
_JSON = {"content-type": "application/json"}
_HEADER = ("", "load", "requests", "good/s", "p50 s", "p99 s", "errors", "429s seen")

Load = Callable[[Client], list[Seen]]
Shown = tuple[list[Seen], dict[str, Any]]
"""What clients saw, and the provider's figures."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone."""
    parser.add_argument("--seconds", type=float, default=15.0, help="of each load (default 15)")


def body(number: int) -> bytes:
    """The n-th question; no two are the same."""
    question = f"Ticket {number}: payments fail since this morning. What should we look at first?"
    message = {"role": "user", "content": question}
    return orjson.dumps({"model": MODEL, "messages": [message], "temperature": 0})


def _provider(seed: int) -> Settings:
    return Settings.model_validate(
        {
            "models": (MODEL,),
            "time_scale": _SCALE,
            "rpm": _RPM,
            "request_burst": _BURST,
            "fault_shares": _FAULTS,
            "fault_seed": seed,
        }
    )


def _naive(kind: str, load: Load, seed: int, folder: Path) -> Shown:
    with Provider(_provider(seed)) as provider:
        told = {"kind": kind, "base_url": provider.base_url, "wait": _NAIVE_WAIT / _SCALE}
        with Serving("scripts.benchmarks.load_proxies", told, folder, {}) as proxy:
            seen = load(Client(f"{proxy.url}{_PATH}", body, _JSON))
        return seen, provider.stats()


def _gateway(load: Load, seed: int, folder: Path) -> Shown:
    limits = {"rpm": _RPM * _SCALE, "burst": _BURST, "max_concurrency": _IN_FLIGHT}
    with Provider(_provider(seed)) as provider:
        section = provider_section(provider.base_url, (MODEL,), limits=limits)
        with Gateway(folder, section) as gateway:
            seen = load(Client(f"{gateway.url}{_PATH}", body, gateway.headers))
        return seen, provider.stats()


def _row(name: str, load: str, shown: Shown) -> tuple[str, ...]:
    seen, stats = shown
    return (
        name,
        load,
        f"{len(seen):,}",
        f"{good_per_second(seen):.1f}",
        f"{percentile(seen, 0.5):.2f}",
        f"{percentile(seen, 0.99):.2f}",
        f"{error_share(seen):.1%}",
        f"{stats['by_status'].get('429', 0):,}",
    )


def bars(under: Sequence[Sequence[Seen]], over: Sequence[Sequence[Seen]]) -> list[Bar]:
    """The last of each is the gateway's."""
    kept = []
    for what, all_seen in (("under the limit", under), ("over it", over)):
        *others, gateway = map(error_share, all_seen)
        kept.append(Bar(f"error share {what}, at most the others'", gateway, "<=", min(others)))
    kept.append(Bar("error share under the limit", error_share(under[-1]), "==", 0))
    return kept


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    rate = _UNDER * _RPM * _SCALE / 60
    loads: dict[str, Load] = {
        "under": lambda client: at_rate(client, rate, args.seconds, args.seed),
        "over": lambda client: at_once(client, _CLIENTS, args.seconds),
    }
    rows, found = [], {}
    for load_name, load in loads.items():
        folder = args.folder / load_name
        shown = {
            "a thread per request": _naive("synchronous", load, args.seed, folder / "threads"),
            "asynchronous": _naive("asynchronous", load, args.seed, folder / "asynchronous"),
            "the gateway": _gateway(load, args.seed, folder / "gateway"),
        }
        rows += [_row(name, load_name, one) for name, one in shown.items()]
        found[load_name] = [seen for seen, _ in shown.values()]
    print_table(_HEADER, rows)
    print()
    return verdict(bars(found["under"], found["over"]))
