"""Which documents of a run have which words: an inverted index in flat arrays, scored by BM25.

A folder holds `terms` (hashes, sorted), `starts` (where the documents of each begin), `docs`,
`counts` (how often a word is in each) and `lengths` (words of each document), all as .npy files
that are mapped into memory where they are large: what no query touches is never read.

Invariant: scores of several runs compare, since how rare a word is, is asked of all of them.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from serve.search.mapped import array_of
from serve.search.words import hash_of, words_at

K1, B = 1.2, 0.75
"""Robertson's: how soon more of the same word tells no more, and how much length matters."""
_FILES = ("terms", "starts", "docs", "counts", "lengths")
_MOST = 255
"""A word counts so often in a document at most."""
MOST_ASKED = 64
"""Words of a query that are scored; a longer one is a text, and its rarest words tell it."""
Places = NDArray[np.int64]


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
        """The files in `folder`. Raises one of READ_ERRORS."""
        return cls(*(array_of(folder / f"{name}.npy") for name in _FILES))

    def fits(self) -> bool:
        """Whether the arrays are as long as they say of each other, and name documents that there
        are."""
        return (
            len(self.starts) == len(self.terms) + 1
            and len(self.docs) == len(self.counts) == int(self.starts[-1])
            and int(self.starts[0]) == 0
            and bool((np.diff(self.starts) >= 0).all())
            and (not len(self.docs) or int(self.docs.max()) < len(self.lengths))
        )

    def with_words(self, hashes: NDArray[np.uint64]) -> tuple[Places, Places]:
        """Where the rows of `docs` and `counts` begin and end that are of each word."""
        if not len(self.terms):
            return np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.int64)
        at = np.searchsorted(self.terms, hashes)
        at[at == len(self.terms)] = 0
        there = self.terms[at] == hashes
        return np.where(there, self.starts[at], 0), np.where(there, self.starts[at + 1], 0)


class Asked:
    """The words of a query, looked up once in all runs. Of those that are there, the MOST_ASKED
    rarest count: what a query costs is bounded, whatever is in it."""

    def __init__(self, runs: Sequence[Postings], words: Sequence[str]) -> None:
        self._runs = runs
        hashes = np.array([hash_of(word) for word in words], dtype=np.uint64)
        self._rows = [run.with_words(hashes) for run in runs]
        having = sum((ends - begins for begins, ends in self._rows), np.zeros(len(words), np.int64))
        self._total = sum(len(run.lengths) for run in runs)
        sizes = sum(int(run.lengths.sum(dtype=np.int64)) for run in runs)
        self._mean = np.float32(max(sizes / self._total, 1.0) if self._total else 1.0)
        self._weights = [_rarity(int(count), self._total) for count in having]
        there = np.flatnonzero(having)
        self._counted = there[np.argsort(having[there], kind="stable")[:MOST_ASKED]]

    def scores(self, run: int) -> NDArray[np.float32]:
        """How well each document of a run answers to the words; 0: it has none of them."""
        postings = self._runs[run]
        scores = np.zeros(len(postings.lengths), dtype=np.float32)
        for word, rows in self._of(run):
            docs = postings.docs[rows]
            count = postings.counts[rows].astype(np.float32)
            length = postings.lengths[docs] / self._mean
            norm = np.float32(K1) * (np.float32(1 - B) + np.float32(B) * length)
            scores[docs] += np.float32(self._weights[word] * (K1 + 1)) * count / (count + norm)
        return scores

    def share(self, run: int, document: int) -> float:
        """How much of what is asked for a document has: of the words' rarity, 0 to 1."""
        had = 0.0
        for word, rows in self._of(run):
            docs = self._runs[run].docs[rows]
            at = int(np.searchsorted(docs, document))
            if at < len(docs) and docs[at] == document:
                had += self._weights[word]
        asked = sum(self._weights)
        return had / asked if asked else 0.0

    def _of(self, run: int) -> Iterator[tuple[int, slice]]:
        begins, ends = self._rows[run]
        for word in self._counted:
            yield int(word), slice(int(begins[word]), int(ends[word]))


def _rarity(having: int, total: int) -> float:
    return math.log(1 + (total - having + 0.5) / (having + 0.5))
