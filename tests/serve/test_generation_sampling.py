"""Choosing tokens: by temperature, nucleus and number, and how likely they were."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve.generation.sampling import Sampling, choose, logprobs

_LOGITS = np.log(np.array([0.5, 0.3, 0.15, 0.05], dtype=np.float32))


def _shares(sampling: Sampling) -> dict[int, float]:
    numbers = (np.arange(1000) + 0.5) / 1000
    found = Counter(choose(_LOGITS, sampling, number) for number in numbers)
    return {token: count / 1000 for token, count in found.items()}


def test_each_token_is_chosen_as_often_as_it_is_likely() -> None:
    assert _shares(Sampling()) == pytest.approx({0: 0.5, 1: 0.3, 2: 0.15, 3: 0.05}, abs=0.002)


def test_the_nucleus_leaves_out_what_is_unlikely() -> None:
    assert _shares(Sampling(top_p=0.79)) == pytest.approx({0: 0.625, 1: 0.375}, abs=0.002)
    assert _shares(Sampling(top_p=0.001)) == {0: 1.0}


def test_a_low_temperature_takes_the_likeliest() -> None:
    assert _shares(Sampling(temperature=0)) == {0: 1.0}
    assert _shares(Sampling(temperature=0.05)) == {0: 1.0}


@given(
    st.lists(st.one_of(st.just(-math.inf), st.floats(-50, 50, width=32)), min_size=1, max_size=600),
    st.floats(0, 2),
    st.floats(0.001, 1),
    st.floats(0, 1, exclude_max=True),
)
def test_a_token_without_probability_is_never_chosen(
    values: list[float], temperature: float, top_p: float, number: float
) -> None:
    logits = np.array([*values, 0.0], dtype=np.float32)
    token = choose(logits, Sampling(temperature, top_p), number)
    assert np.isfinite(logits[token])


def test_logits_that_are_no_numbers_are_an_error() -> None:
    with pytest.raises(FloatingPointError):
        choose(np.array([np.nan, 1], dtype=np.float32), Sampling(), 0.5)


def test_logprobs_are_those_of_the_model_best_first() -> None:
    own, top = logprobs(_LOGITS + 3, 2, 2)
    assert own.logprob == pytest.approx(math.log(0.15), abs=1e-5)
    assert [each.token for each in top] == [0, 1]
    assert top[0].logprob == pytest.approx(math.log(0.5), abs=1e-5)
    assert logprobs(_LOGITS, 0, 0)[1] == []
