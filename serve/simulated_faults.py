"""Which request meets which fault: by schedule, else by probability, always by seed.

Invariant: requests are numbered from 1 in the order in which they are admitted (a request that is
refused for its form, a limit, the quota or an outage has no number), a scheduled fault always
happens: where it does not suit its request it waits for the next one that it suits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Set
from random import Random

from serve.simulated_settings import FaultKind


def seeded_schedule(
    shares: Mapping[FaultKind, float], requests: int, *, at_least: int = 0, seed: int = 0
) -> dict[int, FaultKind]:
    """A schedule for the first `requests` requests that holds of each kind its share of them,
    rounded, and not less than `at_least`, in an order that `seed` decides.

    Raises ValueError where they do not fit into so many requests.
    """
    kinds: list[FaultKind] = []
    for kind, share in sorted(shares.items()):
        kinds += [kind] * max(round(share * requests), at_least if share else 0)
    if len(kinds) > requests:
        raise ValueError(f"{len(kinds)} faults do not fit into {requests} requests")
    random = Random(seed)
    random.shuffle(kinds)
    return dict(zip(sorted(random.sample(range(1, requests + 1), len(kinds))), kinds, strict=True))


class FaultPlan:
    """Hands out the faults, one request at a time."""

    def __init__(
        self, shares: Mapping[FaultKind, float], schedule: Mapping[int, FaultKind], seed: int
    ) -> None:
        self._shares = sorted(shares.items())
        self._schedule = schedule
        self._seed = seed
        self._waiting: deque[FaultKind] = deque()
        self.number = 0
        """Of the last request that was drawn for."""

    def random(self, purpose: str = "details") -> Random:
        """Chances of the last request for one purpose: the same for the same seed and number."""
        return Random(f"{self._seed}:{purpose}:{self.number}")

    def draw(self, suits: Set[FaultKind]) -> FaultKind | None:
        """Number the next request, which only the kinds in `suits` can strike, and say what
        strikes it."""
        self.number += 1
        if self.number in self._schedule:
            self._waiting.append(self._schedule[self.number])
        due = next((kind for kind in self._waiting if kind in suits), None)
        if due is not None:
            self._waiting.remove(due)
            return due
        chance = self.random("draw").random()
        for kind, share in self._shares:
            if chance < share:
                return kind if kind in suits else None
            chance -= share
        return None

    def pending(self) -> int:
        """Scheduled faults that have not happened yet."""
        return len(self._waiting) + sum(1 for number in self._schedule if number > self.number)
