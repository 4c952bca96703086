"""What the gateway costs beside a bare pass-through: requests per second, processor time and delay,
on both ingresses, with an upstream that answers at once.

nginx is the upstream and wrk the load (Debian: nginx-light, wrk). In one run, by turns in short
rounds: the upstream alone; a FastAPI application that passes on with aiohttp and does nothing else;
the gateway with keys, limits, metrics and routing on; exact cache hits. Figures are medians of the
rounds. Afterwards the stacks of the replica say where the time of one request goes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import orjson

from scripts.benchmarks.checks import Bar, print_table, verdict
from scripts.benchmarks.gateway_command import (
    PROVIDER,
    provider_section,
    write_configuration,
)
from scripts.benchmarks.gateway_load import (
    DIFFERENT,
    Round,
    Target,
    cpu_seconds,
    median_round,
    put_under_load,
)
from scripts.benchmarks.gateway_serving import BARE, GATEWAY, Ingress, Serving, ingress_environment
from scripts.benchmarks.gateway_stages import FOLDER_VARIABLE, samples_of, sampling
from scripts.benchmarks.gateway_upstream import MODELS, Upstream, missing_packages

CONNECTIONS = (16, 64)
ALONE, PASSED, ASKED, HIT = "upstream alone", "bare pass-through", "the gateway", "exact cache hits"
REPLICA = f"replica {GATEWAY}"
_UPSTREAM_SECONDS = 2
_WARM_SECONDS = 2
_LEAST_OF_BARE: Mapping[Ingress, float] = {"default": 0.8, "fast": 0.6}
"""The gateway's requests per second as a share of the pass-through's."""
_NEVER_REACHED = {"rpm": 10_000_000, "tpm": 100_000_000_000, "max_concurrency": 256}
_HEADER = ("", "conn.", "requests/s", "CPU ms", "p50 ms", "p99 ms", "+p50", "+p99", "errors")
_SYSTEM = (
    "You are the assistant of an operations team. Answer in one short paragraph, say what happened "
    "and what to do next, and do not make up numbers that are not in the text."
)
_QUESTION = (
    "Ticket {n}: since this morning payments fail with 'could not obtain a connection from the "
    "pool within 3 s'. The nightly export started at 09:10 instead of 02:00. Restarting it all "
    "helped for a minute. What is the likely cause, and what should we do first?"
)

Rounds = dict[tuple[str, int], list[Round]]
"""By the target's name and the number of connections."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone."""
    parser.add_argument("--part", choices=("default", "fast"), help="one ingress only")
    parser.add_argument("--rounds", type=int, default=3, help="of each target (default 3)")
    parser.add_argument("--seconds", type=int, default=6, help="of one round (default 6)")


def body(number: int, model: str) -> bytes:
    """A chat request as a client sends it; each number is another question."""
    return orjson.dumps(
        {
            "model": model,
            "messages": [
                {"role": "system", "content": _SYSTEM},
                {"role": "user", "content": _QUESTION.format(n=number)},
            ],
            "temperature": 0,
            "max_tokens": 300,
        }
    )


def _targets(base_url: str, serving: Serving, key: str, ingress: Ingress) -> list[Target]:
    """What is put under load on one ingress, the upstream alone first."""
    different = [body(number, MODELS[0]) for number in range(DIFFERENT)]
    routed = [body(number, "auto") for number in range(DIFFERENT)]
    json = {"content-type": "application/json"}
    known = {**json, "authorization": f"Bearer {key}"}
    cached = {**known, "x-fupan-cache": "exact"}
    path = "/v1/chat/completions"
    targets = [
        Target(ALONE, f"{base_url}/chat/completions", different, json),
        Target(PASSED, f"{serving.url}/{BARE}{path}", different, json, serving.pid),
        Target(ASKED, f"{serving.url}{path}", routed, known, serving.pid),
    ]
    if ingress == "fast":
        targets.append(Target(HIT, f"{serving.url}{path}", routed[:1], cached, serving.pid))
    return targets


def measure(targets: Sequence[Target], rounds: int, seconds: int, folder: Path) -> Rounds:
    """All targets by turns at each number of connections, in the other order every other time."""
    found: Rounds = {}
    for target in targets:
        put_under_load(target, CONNECTIONS[0], _WARM_SECONDS, folder)
    for number, connections in product(range(rounds), CONNECTIONS):
        for target in targets[:: -1 if number % 2 else 1]:
            span = seconds if target.root is not None else _UPSTREAM_SECONDS
            one = put_under_load(target, connections, span, folder)
            found.setdefault((target.name, connections), []).append(one)
    return found


def _on(
    ingress: Ingress, base_url: str, args: argparse.Namespace
) -> tuple[Rounds, Mapping[str, int]]:
    """The rounds on one ingress, and the samples of the gateway's replica by stage."""
    folder = args.folder / ingress
    provider = provider_section(base_url, MODELS, limits=_NEVER_REACHED)
    auto = {"fast": f"{PROVIDER}/{MODELS[0]}", "powerful": f"{PROVIDER}/{MODELS[1]}"}
    config, key = write_configuration(folder, provider, {"auto": auto})
    told = {"base_url": base_url, "config": str(config)}
    stages = folder / "stages"
    stages.mkdir()
    environment = {**ingress_environment(ingress), FOLDER_VARIABLE: str(stages)}
    with Serving("scripts.benchmarks.gateway_apps", told, folder, environment) as serving:
        targets = _targets(base_url, serving, key, ingress)
        found = measure(targets, args.rounds, args.seconds, folder)
        asked = next(target for target in targets if target.name == ASKED)
        with sampling(stages):
            put_under_load(asked, CONNECTIONS[0], args.seconds, folder)
        roles = {role: pid for pid, (role, _) in cpu_seconds(serving.pid).items()}
        return found, samples_of(stages, roles[REPLICA])


def _rows(ingress: Ingress, medians: Mapping[tuple[str, int], Round]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for (name, connections), one in medians.items():
        alone = medians[ALONE, connections]
        rows.append(
            (
                f"{name}, {ingress} ingress" if one.cpu else name,
                str(connections),
                f"{one.rate:,.0f}",
                f"{one.all_cpu:.2f}" if one.cpu else "-",
                f"{one.p50:.1f}",
                f"{one.p99:.1f}",
                f"{one.p50 - alone.p50:.1f}" if one.cpu else "-",
                f"{one.p99 - alone.p99:.1f}" if one.cpu else "-",
                str(one.errors),
            )
        )
    return rows


def stage_rows(asked: Round, samples: Mapping[str, int]) -> list[tuple[str, str, str]]:
    """Where the processor time of one request goes: the replica's by its samples, the rest by
    process."""
    spent = {role: cpu for role, cpu in asked.cpu.items() if role != REPLICA}
    total = sum(samples.values())
    inside = {name: asked.cpu[REPLICA] * count / total for name, count in samples.items()}
    ranked = sorted(inside.items(), key=lambda item: -item[1])
    ranked += sorted(spent.items(), key=lambda item: -item[1])
    return [
        (name, f"{cpu * 1000:,.0f}", f"{cpu / asked.all_cpu:.0%}")
        for name, cpu in [*ranked, ("all", asked.all_cpu)]
    ]


def bars(ingress: Ingress, medians: Mapping[tuple[str, int], Round]) -> list[Bar]:
    """What the gateway must do beside the pass-through on this ingress."""
    kept = []
    for connections in CONNECTIONS:
        passed = medians[PASSED, connections].rate
        where = f"{connections} connections, {ingress} ingress"
        least = [(ASKED, _LEAST_OF_BARE[ingress])]
        if ingress == "fast":
            least.append((HIT, 1.0))
        for name, share in least:
            rate = medians[name, connections].rate
            kept.append(Bar(f"{name} / {PASSED}, {where}", round(rate / passed, 3), ">=", share))
    errors = sum(one.errors for one in medians.values())
    return [*kept, Bar(f"errors, {ingress} ingress", errors, "==", 0)]


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold, 2 where nginx or wrk is not there."""
    if missing := missing_packages():
        print(f"this needs {' and '.join(missing)}: apt-get install them", file=sys.stderr)
        return 2
    parts: tuple[Ingress, ...] = (args.part,) if args.part else ("default", "fast")
    held: list[Bar] = []
    with Upstream(args.folder / "upstream") as upstream:
        for ingress in parts:
            found, samples = _on(ingress, upstream.base_url, args)
            medians = {key: median_round(rounds) for key, rounds in found.items()}
            print_table(_HEADER, _rows(ingress, medians))
            print()
            print_table(
                (f"one request, {ingress} ingress", "us of CPU", "share"),
                stage_rows(medians[ASKED, CONNECTIONS[0]], samples),
            )
            print()
            held += bars(ingress, medians)
    return verdict(held)
