"""What chance explains: bounds of shares, and a test of pairs. Pure.

Invariant: nothing here assumes many observations; every bound holds for shares of 0 and 1 too.
"""

from __future__ import annotations

from math import comb, sqrt

Z = 2.326
"""Of the normal distribution: one side, 1 in 100."""


def wilson(hits: int, of: int) -> tuple[float, float]:
    """Between which bounds a share lies of which `hits` in `of` were seen, each wrong 1 time in
    100 (Wilson 1927)."""
    if of == 0:
        return 0.0, 1.0
    seen = hits / of
    spread = Z * sqrt(seen * (1 - seen) / of + Z**2 / (4 * of**2))
    middle = seen + Z**2 / (2 * of)
    scale = 1 + Z**2 / of
    # Rounding must not leave a share of 0 or 1 outside its own bounds.
    low = 0.0 if hits == 0 else (middle - spread) / scale
    high = 1.0 if hits == of else (middle + spread) / scale
    return low, high


def least_difference(hits: int, of: int, other_hits: int, other_of: int) -> float:
    """By how much at least the first share is greater than the other, wrong 1 time in 100; below 0
    where it need not be greater at all (Newcombe 1998, method 10)."""
    if not of or not other_of:
        return -1.0
    first, other = hits / of, other_hits / other_of
    low, high = wilson(hits, of)[0], wilson(other_hits, other_of)[1]
    return first - other - sqrt((first - low) ** 2 + (high - other) ** 2)


def sign_test(more: int, fewer: int) -> float:
    """How probable it is by chance alone that of `more + fewer` records that differ as many as
    `more` or more differ in one direction (McNemar's test, exact)."""
    differ = more + fewer
    if differ == 0:
        return 1.0
    return float(sum(comb(differ, n) for n in range(more, differ + 1)) / 2**differ)
