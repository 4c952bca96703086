"""The sizes that packs may have: a grid of steps, each a quarter more than the one below. Pure.

Invariant: `step_of(tokens_of(step)) == step` for every step of the grid.
"""

from __future__ import annotations

import math

from job.pack.packing import WIRE_TOKENS

STEP = 1.25
"""From one size to the next."""
LEAST_TOKENS = 1000
"""Of a pack: below, instructions cost more than the records they go with."""
FIRST = math.ceil(math.log(LEAST_TOKENS / WIRE_TOKENS["fast"], STEP))
LAST = 40
"""Steps of the grid: from 1,049 tokens to 38 million, more than any context."""


def tokens_of(step: int) -> int:
    """The size that is `step` steps of the grid above the start."""
    return round(WIRE_TOKENS["fast"] * STEP**step)


def step_of(wire: float) -> int:
    """The step nearest to a pack of `wire` tokens, by their ratio."""
    return max(FIRST, round(math.log(max(wire, 1.0) / WIRE_TOKENS["fast"], STEP)))


def step_within(wire: float) -> int:
    """The biggest step that `wire` tokens hold; the first where they hold none."""
    return max(FIRST, math.floor(math.log(max(wire, 1.0) / WIRE_TOKENS["fast"], STEP)))


def named(key: str) -> int:
    """A step of the grid, as a key of JSON. Raises ValueError."""
    step = int(key)
    if not FIRST <= step <= LAST:
        raise ValueError(f"no step of the grid: {key}")
    return step
