"""Which documents of a run have which words: an inverted index in flat arrays, scored by BM25.

A folder holds `terms` (hashes, sorted), `starts` (where the documents of each begin), `docs`,
`counts` (how often a word is in each) and `lengths` (words of each document), all as .npy files
that are mapped into memory: what no query touches is never read.

Invariant: scores of several runs compare, since how rare a word is, is asked of all of them.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serve.search.words import hash_of, words_at

K1, B = 1.2, 0.75
"""Robertson's: how soon more of the same word tells no more, and how much length matters."""
_FILES = ("terms", "starts", "docs", "counts", "lengths")
_MOST = 255
"""A word counts so often in a document at most."""


@dataclass(frozen=True, slots=True)
class Postings:
    """The words of one run's documents."""

    terms: NDArray[np.uint64]
    starts: NDArray[np.int64]
    docs: NDArray[np.uint32]
    counts: NDArray[np.uint8]
    lengths: NDArray[np.uint32]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Postings:
        """The index of `texts`, in their order."""
        words, docs, counts, lengths = array("Q"), array("I"), array("B"), array("I")
        for number, text in enumerate(texts):
            found = Counter(word for word, _, _ in words_at(text))
            words.extend(map(hash_of, found))
            docs.extend([number] * len(found))
            counts.extend(min(count, _MOST) for count in found.values())
            lengths.append(found.total())
        all_words = np.frombuffer(words, dtype=np.uint64)
        order = np.argsort(all_words, kind="stable")
        terms, firsts = np.unique(all_words[order], return_index=True)
        return cls(
            terms,
            np.append(firsts, len(order)).astype(np.int64),
            np.frombuffer(docs, dtype=np.uint32)[order],
            np.frombuffer(counts, dtype=np.uint8)[order],
            np.frombuffer(lengths, dtype=np.uint32),
        )

    def save(self, folder: Path) -> None:
        """Write the files into `folder`."""
        for name in _FILES:
            np.save(folder / f"{name}.npy", getattr(self, name), allow_pickle=False)

    @classmethod
    def load(cls, folder: Path) -> Postings:
        """The files in `folder`, mapped. Raises OSError, EOFError and ValueError."""
        return cls(*(_mapped(folder / f"{name}.npy") for name in _FILES))

    def fits(self) -> bool:
        """Whether the arrays are as long as they say of each other."""
        return (
            len(self.starts) == len(self.terms) + 1
            and len(self.docs) == len(self.counts) == int(self.starts[-1])
            and int(self.starts[0]) == 0
        )

    def with_word(self, word: str) -> slice:
        """The rows of `docs` and `counts` that are of `word`."""
        wanted = np.uint64(hash_of(word))
        at = int(np.searchsorted(self.terms, wanted))
        if at == len(self.terms) or self.terms[at] != wanted:
            return slice(0, 0)
        return slice(int(self.starts[at]), int(self.starts[at + 1]))


def _mapped(file: Path) -> Any:
    """An array of a file. One without rows cannot be mapped."""
    try:
        return np.load(file, mmap_mode="r", allow_pickle=False)
    except ValueError:
        return np.load(file, allow_pickle=False)


def score(runs: Sequence[Postings], words: Sequence[str]) -> list[NDArray[np.float32]]:
    """How well each document of each run answers to `words`; 0: it has none of them."""
    found = [[run.with_word(word) for word in words] for run in runs]
    total = sum(len(run.lengths) for run in runs)
    sizes = sum(int(run.lengths.sum(dtype=np.int64)) for run in runs)
    mean = max(sizes / total, 1.0) if total else 1.0
    weights = [
        _rarity(sum(rows[n].stop - rows[n].start for rows in found), total)
        for n in range(len(words))
    ]
    return [
        _scored(run, rows, weights, np.float32(mean)) for run, rows in zip(runs, found, strict=True)
    ]


def share(runs: Sequence[Postings], words: Sequence[str], run: int, document: int) -> float:
    """How much of what `words` ask for a document has: of their rarity, 0 to 1."""
    total = sum(len(each.lengths) for each in runs)
    asked = had = 0.0
    for word in words:
        rows = [each.with_word(word) for each in runs]
        weight = _rarity(sum(each.stop - each.start for each in rows), total)
        asked += weight
        docs = runs[run].docs[rows[run]]
        at = int(np.searchsorted(docs, document))
        if at < len(docs) and docs[at] == document:
            had += weight
    return had / asked if asked else 0.0


def _scored(
    run: Postings, rows: Sequence[slice], weights: Sequence[float], mean: np.float32
) -> NDArray[np.float32]:
    scores = np.zeros(len(run.lengths), dtype=np.float32)
    for each, weight in zip(rows, weights, strict=True):
        docs = run.docs[each]
        count = run.counts[each].astype(np.float32)
        norm = np.float32(K1) * (np.float32(1 - B) + np.float32(B) * run.lengths[docs] / mean)
        scores[docs] += np.float32(weight * (K1 + 1)) * count / (count + norm)
    return scores


def _rarity(having: int, total: int) -> float:
    return math.log(1 + (total - having + 0.5) / (having + 0.5))
