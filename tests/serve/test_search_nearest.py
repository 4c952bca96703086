"""The nearest vectors, against comparing all of them in NumPy; and lists that are joined."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from serve.search.catalog import SavedGraph
from serve.search.graphs import FEWEST, Graph, is_due, write_graph
from serve.search.nearest import AT_ONCE, Nearest
from serve.search.postings import MOST_ASKED, Asked, Postings
from serve.search.vectors import Half, Part, find, read_parts, write_part
from serve.search.view import RANK, join
from serve.search.words import asked_words, words_at

MANY = 2 * AT_ONCE
"""Vectors beyond which a filter of a half is not compared one by one."""


def clustered(count: int, seed: int = 7, length: int = 32) -> Half:
    """Vectors in clusters, as texts that say nearly the same have them; the same clusters for every
    seed."""
    centres = np.random.default_rng(1).standard_normal((50, length))
    rng = np.random.default_rng(seed)
    made = centres[rng.integers(0, 50, count)] + 0.7 * rng.standard_normal((count, length))
    unit: Half = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float16)
    return unit


def oracle(vectors: Half, vector: Half, most: int, passes: NDArray[np.bool_]) -> list[int]:
    """The nearest by 64 bits."""
    rows = np.flatnonzero(passes)
    cosines = vectors[rows].astype(np.float64) @ vector.astype(np.float64)
    return [int(row) for row in rows[np.argsort(-cosines, kind="stable")[:most]]]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Half, Nearest]:
    """Vectors of two segments in a graph that was saved and opened again."""
    vectors = clustered(MANY)
    folder = tmp_path_factory.mktemp("graphs") / "g"
    half = MANY // 2
    groups = np.arange(half, dtype=np.int32)
    names = write_graph(
        folder, {"a": Part(groups, vectors[:half]), "b": Part(groups, vectors[half:])}
    )
    graph = Graph(folder, SavedGraph("*", "g", names))
    return vectors, graph.nearest({"a": 0, "b": half})


@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.6, 0.3, 0.01, 0.0005, 0.0])
def test_with_every_filter_nearly_all_of_the_nearest_are_found(
    large: tuple[Half, Nearest], share: float
) -> None:
    vectors, nearest = large
    rng = np.random.default_rng(3)
    passes = rng.random(len(vectors)) < share
    recalls = []
    for vector in clustered(50, seed=8):
        keys, cosines = nearest.search(vector, 10, passes if share < 1 else None)
        right = oracle(vectors, vector, 10, passes)
        assert passes[keys].all()
        assert (np.diff(cosines) <= 0).all()
        assert len(keys) == len(right)
        recalls.append(len(set(keys.tolist()) & set(right)) / max(len(right), 1))
    assert np.mean(recalls) >= 0.98 if share else np.mean(recalls) == 0


@pytest.mark.slow
def test_what_is_gone_is_not_found_in_the_graph(large: tuple[Half, Nearest]) -> None:
    vectors, whole = large
    half = len(vectors) // 2
    keys = np.where(whole.keys < half, -1, whole.keys - half)
    left = Nearest(keys, whole.vectors, whole.graph)
    found, _ = left.search(vectors[3], 10, None)
    assert (found >= 0).all()
    assert len(found) == 10


@given(st.integers(1, 60), st.integers(1, 20), st.lists(st.booleans(), min_size=60, max_size=60))
def test_few_vectors_are_all_compared(count: int, most: int, passing: list[bool]) -> None:
    vectors = clustered(count, seed=count)
    passes = np.array(passing[:count])
    keys, _ = Nearest(np.arange(count), vectors).search(vectors[0], most, passes)
    right = oracle(vectors, vectors[0], most, passes)
    best = vectors.astype(np.float64) @ vectors[0].astype(np.float64)
    assert len(keys) == len(right)
    # Two that are as near to a thousandth may change places.
    np.testing.assert_allclose(best[keys], best[right], atol=2e-3)


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7))
def test_a_graph_is_made_where_there_are_many_and_anew_where_it_is_stale(
    covered: int, missing: int, vain: int
) -> None:
    vain = min(vain, covered)
    due = is_due(covered, missing, vain)
    if covered - vain + missing < FEWEST or missing + vain == 0:
        assert not due
    if covered == 0 and missing >= FEWEST:
        assert due


@given(st.lists(st.lists(st.integers(0, 9), unique=True), min_size=1, max_size=3), st.floats(0, 2))
def test_joined_by_reciprocal_rank(lists: list[list[int]], weight: float) -> None:
    named = {str(n): keys for n, keys in enumerate(lists)}
    joined = join(named, {"0": weight})
    assert {key for key, _, _ in joined} == {key for keys in lists for key in keys}
    for key, score_, places in joined:
        assert all(named[name][place - 1] == key for name, place in places.items())
        weighed = ((weight if name == "0" else 1.0, place) for name, place in places.items())
        assert score_ == pytest.approx(sum(each / (RANK + place) for each, place in weighed))
    assert [each[1] for each in joined] == sorted((each[1] for each in joined), reverse=True)


@given(st.text(max_size=80))
def test_words_stand_where_they_are_said_to(text: str) -> None:
    for word, start, end in words_at(text):
        assert word
        assert 0 <= start < end <= len(text)
    assert set(asked_words(text)) <= {word for word, _, _ in words_at(text)}


@given(st.lists(st.text("ab 退款了", max_size=12), max_size=8), st.text("ab 退款了", max_size=6))
def test_scores_are_of_the_documents_that_have_the_words(texts: list[str], query: str) -> None:
    asked = asked_words(query)
    scores = Asked([Postings.of(texts)], asked).scores(0)
    having = [any(word in asked for word, _, _ in words_at(text)) for text in texts]
    assert (scores > 0).tolist() == having


def test_how_rare_a_word_is_is_asked_of_all_runs() -> None:
    # "rare" is in each document of the one run and in none of the other.
    runs = [Postings.of(["rare thing"]), Postings.of(["common word", "common thing", "common"])]
    alone, together = Asked(runs[:1], ["rare"]), Asked(runs, ["rare"])
    assert together.scores(0)[0] > alone.scores(0)[0]


def test_of_a_query_that_is_a_text_the_rarest_words_count() -> None:
    words = [f"word{n}x" for n in range(MOST_ASKED + 6)]
    # The first are in both documents, the others in one.
    texts = [" ".join(words), " ".join(words[:10])]
    asked = Asked([Postings.of(texts)], ["kangaroo"] * 100 + words)
    assert asked.scores(0)[0] > 0
    assert asked.scores(0)[1] > 0
    common = Asked([Postings.of(texts)], words[:10])
    np.testing.assert_allclose(asked.scores(0)[1] / common.scores(0)[1], 4 / 10, rtol=1e-4)


def test_vectors_are_read_back_as_they_were_kept(tmp_path: Path) -> None:
    vectors = clustered(20)
    digests = np.array([bytes([n]) * 15 + b"\0" for n in range(20)], dtype="S16")
    groups = np.arange(20, dtype=np.int32)
    write_part(tmp_path, groups[10:], digests[10:], vectors[10:])
    write_part(tmp_path, groups[:10], digests[:10], vectors[:10])
    (tmp_path / "z.parquet").write_bytes(b"damaged")
    names = sorted(file.name for file in tmp_path.iterdir())
    part = read_parts(tmp_path, names, 20)
    assert part is not None
    np.testing.assert_array_equal(part.groups, groups)
    np.testing.assert_array_equal(part.vectors, vectors)
    wanted = np.array([digests[3], b"x" * 16], dtype="S16")
    assert find(digests, wanted).tolist() == [3, -1]
