"""Which of those who wait make the next batch. Pure.

Invariant: the one that waited longest is always in it, so nobody starves; all others are as near to
it in length as can be, so little is padded; the batch keeps to its limit unless that one alone is
over it.
"""

from __future__ import annotations

from collections.abc import Sequence

WASTE = 0.2
"""The share of a padded batch that padding may take, and of `enough` where the batch is smaller:
the fixed part of a call, which company saves, costs MiniLM as much on one core as 75 tokens."""


def choose(sizes: Sequence[int], limit: int, padded: bool, enough: int) -> list[int]:
    """Places in `sizes` (tokens of those who wait, the oldest first, at least one), shortest first.
    `padded`: each costs as much as the longest of its batch; `enough`: tokens from which on a
    larger batch is no more efficient."""
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    low = high = order.index(0)
    total = sizes[0]

    def cost(longest: int, number: int, tokens: int) -> int:
        return longest * number if padded else tokens

    def fits(tokens: int, longest: int, number: int) -> bool:
        taken = cost(longest, number, tokens)
        return taken <= limit and taken - tokens <= WASTE * max(taken, enough)

    while True:
        number = high - low + 2
        beside: list[tuple[int, bool]] = []
        if low > 0:
            beside.append((sizes[0] - sizes[order[low - 1]], True))
        if high + 1 < len(order):
            beside.append((sizes[order[high + 1]] - sizes[0], False))
        for _, below in sorted(beside):
            place = order[low - 1] if below else order[high + 1]
            longest = max(sizes[place], sizes[order[high]])
            if fits(total + sizes[place], longest, number):
                low, high = (low - 1, high) if below else (low, high + 1)
                total += sizes[place]
                break
        else:
            return order[low : high + 1]
