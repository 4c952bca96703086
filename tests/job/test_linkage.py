"""Which groups join, and which do not."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from job.themes.linkage import agglomerate, cohesion

PRIOR = 0.3


def blocks(sizes: list[int], within: float, between: float) -> NDArray[np.float32]:
    """Similarities of groups of these sizes."""
    label = np.repeat(np.arange(len(sizes)), sizes)
    return np.where(label[:, None] == label, within, between).astype(np.float32)


def groups(owners: NDArray[np.intp]) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(owners == owner).tolist()) for owner in set(owners.tolist())}


def test_groups_that_are_apart_stay_apart() -> None:
    owners = agglomerate(blocks([3, 1, 4], within=0.5, between=0.05), PRIOR, join=0.4)
    assert owners.tolist() == [0, 0, 0, 3, 4, 4, 4, 4]


def test_a_loose_cause_joins_where_a_tight_one_would_not() -> None:
    between = 0.2
    loose = blocks([4, 4], within=0.25, between=between)
    tight = blocks([4, 4], within=0.7, between=between)
    assert len(groups(agglomerate(loose, PRIOR, join=0.5))) == 1
    assert len(groups(agglomerate(tight, PRIOR, join=0.5))) == 2


def test_no_chain() -> None:
    count = 12
    steps = np.abs(np.arange(count)[:, None] - np.arange(count))
    similarity = np.maximum(0.0, 0.6 - 0.3 * steps).astype(np.float32)
    owners = agglomerate(similarity, PRIOR, join=0.5)
    assert all(max(group) - min(group) <= 3 for group in groups(owners))


def test_one_row_and_none() -> None:
    assert agglomerate(np.ones((1, 1), dtype=np.float32), PRIOR, join=0.4).tolist() == [0]
    assert agglomerate(np.ones((0, 0), dtype=np.float32), PRIOR, join=0.4).tolist() == []


def test_cohesion_goes_from_the_prior_to_the_mean() -> None:
    assert cohesion(1, 0.0, PRIOR) == PRIOR
    assert PRIOR < cohesion(3, 6 * 0.9, PRIOR) < 0.9
    assert abs(cohesion(100, 9_900 * 0.9, PRIOR) - 0.9) < 1e-3


@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.floats(0.2, 0.9))
def test_any_order_gives_the_same_groups(seed: int, count: int, join: float) -> None:
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((4, 8))
    rows = centres[rng.integers(0, 4, count)] + 0.7 * rng.standard_normal((count, 8))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    similarity = (rows @ rows.T).astype(np.float32)
    order = rng.permutation(count)
    plain = groups(agglomerate(similarity.copy(), PRIOR, join))
    mixed = groups(agglomerate(similarity[np.ix_(order, order)].copy(), PRIOR, join))
    assert {frozenset(int(order[i]) for i in group) for group in mixed} == plain


@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_no_join_above_the_limit_is_left_undone(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    similarity = (rows @ rows.T).astype(np.float32)
    owners = agglomerate(similarity.copy(), PRIOR, join=0.4)
    members = [sorted(group) for group in groups(owners)]
    for number, one in enumerate(members):
        for other in members[:number]:
            mean = similarity[np.ix_(one, other)].mean()
            own = [_within(similarity, group) for group in (one, other)]
            assert mean / np.sqrt(own[0] * own[1]) < 0.4 + 1e-4


def _within(similarity: NDArray[np.float32], group: list[int]) -> float:
    block = similarity[np.ix_(group, group)]
    return cohesion(len(group), float(block.sum() - np.trace(block)), PRIOR)
