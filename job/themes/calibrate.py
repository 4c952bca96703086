"""Learn the theme space of an embedding model from wordings of known causes.

Taken out of the vectors are their mean, the direction from English to Chinese, and, as far as it
pays, the directions in which wordings of the same thing differ (within-class covariance
normalisation: Hatch, Kajarekar and Stolcke 2006). `calibration.jsonl` holds wordings of known
causes, `fillers.jsonl` sentences about ever other products, places and people, which must not
decide a theme. The labelled pairs and half of the causes that the tests try are left out.

Invariant: the same model and wordings give the same space. That of the bundled model ships
(`python -m job.themes.calibrate` writes it); any other model is calibrated when a run opens it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from job.themes.space import (
    BUNDLED_SPACE,
    Encode,
    Projection,
    ThemeSpace,
    Vectors,
    bundled_space,
    unit_rows,
)
from serve.embedder import Embedder

WORDINGS = Path(__file__).with_name("calibration.jsonl")
FILLERS = Path(__file__).with_name("fillers.jsonl")
_FILLED = 24
"""Times each sentence is filled: 8 gain half as much, 30 hardly more."""

_SHRINKAGE = 0.5
"""Part of the identity in the covariance that is inverted; with these wordings 0.5 is best
(tried 0.1 to 1 on wordings left out)."""
_PRIOR_SHARE = 2 / 3
"""A prior as a part of the mean similarity of two wordings of one cause. Below 1, or small groups
would never begin; from 0.5 to 0.8 it hardly matters on wordings left out."""


class Wording(TypedDict):
    """One line of the calibration file: an event and a cause as an analyst words them, the cause
    null for praise. Wordings of one `label` mean the same; labels of one `area` are near."""

    label: str
    area: str
    lang: str
    event: str
    cause: str | None


def calibration_wordings() -> list[Wording]:
    """The wordings every space is learned from."""
    return _read(WORDINGS) + list(_filled_sentences())


def _filled_sentences() -> Iterator[Wording]:
    """Each sentence with products, places and people in turn, in both languages."""
    rows = _read(FILLERS)
    fillers = {row["fill"]: row["words"] for row in rows if "fill" in row}
    sentences = [row["sentence"] for row in rows if "sentence" in row]
    for number, sentence in enumerate(sentences):
        for language, lang in enumerate(("zh", "en")):
            for turn in range(_FILLED):
                # Steps by which no two fillers keep together.
                words = {
                    fill: some[(number * step + turn) % len(some)][language]
                    for step, (fill, some) in enumerate(fillers.items(), 1)
                }
                text = sentence[language].format(**words)
                name = f"filled-{number}"
                yield Wording(label=name, area=name, lang=lang, event=text, cause=text)


def _read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def space_of(model: str, encode: Encode) -> ThemeSpace:
    """The space of the embedder called `model`: the bundled one as it ships, any other calibrated
    now, which takes `encode` some two thousand short texts."""
    bundled = bundled_space()
    if model == bundled.model:
        return bundled
    return calibrate(model, encode, calibration_wordings())


def calibrate(model: str, encode: Encode, wordings: Sequence[Wording]) -> ThemeSpace:
    """Learn the space of `model` from `wordings`."""
    problems = [w for w in wordings if w["cause"] is not None]
    praise = [w for w in wordings if w["cause"] is None]
    event, events_alike = _learn(problems, encode([w["event"] for w in problems]))
    cause, causes_alike = _learn(problems, encode([w["cause"] or "" for w in problems]))
    praised, praise_alike = _learn(praise, encode([w["event"] for w in praise]))
    return ThemeSpace(
        model=model,
        event=event,
        cause=cause,
        praise=praised,
        problem_prior=_PRIOR_SHARE * (events_alike + causes_alike) / 2,
        praise_prior=_PRIOR_SHARE * praise_alike,
    )


def _learn(wordings: Sequence[Wording], vectors: Vectors) -> tuple[Projection, float]:
    """The projection for `vectors`, one a wording, and the mean similarity that two wordings of
    one label have after it."""
    areas = sorted({w["area"] for w in wordings})
    half = np.array([areas.index(w["area"]) % 2 for w in wordings])
    alike = []
    for part in (0, 1):
        # Measured on wordings the projection has not seen: on its own it flatters itself.
        learned = [w for w, h in zip(wordings, half, strict=True) if h != part]
        others = np.array([w["label"] for w, h in zip(wordings, half, strict=True) if h == part])
        places = _fit(learned, vectors[half != part])(vectors[half == part])
        same = others[:, None] == others[None]
        np.fill_diagonal(same, val=False)
        alike.append(float((places @ places.T)[same].mean()))
    return _fit(wordings, vectors), float(np.mean(alike))


def _fit(wordings: Sequence[Wording], vectors: Vectors) -> Projection:
    labels = np.array([w["label"] for w in wordings])
    chinese = np.array([w["lang"] == "zh" for w in wordings])
    x = vectors.astype(np.float64)
    zh, en = x[chinese].mean(axis=0), x[~chinese].mean(axis=0)
    # Midway between the languages, whatever the share of each among the wordings.
    mean, direction = (zh + en) / 2, (zh - en) / np.linalg.norm(zh - en)
    size = x.shape[1]
    project = np.eye(size) - np.outer(direction, direction)
    placed = unit_rows((x - mean) @ project)
    scatter = np.zeros((size, size))
    for label in np.unique(labels):
        group = placed[labels == label]
        centred = group - group.mean(axis=0)
        scatter += centred.T @ centred
    scatter *= size / np.trace(scatter)
    values, axes = np.linalg.eigh((1 - _SHRINKAGE) * scatter + _SHRINKAGE * np.eye(size))
    shaped = project @ (axes / np.sqrt(values)) @ axes.T
    return Projection(mean.astype(np.float32), shaped.astype(np.float32))


def main() -> None:
    """Write the space of the bundled model."""
    embedder = Embedder()
    calibrate(embedder.name, embedder.encode, calibration_wordings()).save(BUNDLED_SPACE)


if __name__ == "__main__":
    main()
