"""The time left, as it is told while a run goes on."""

from __future__ import annotations

import heapq
from dataclasses import asdict

import pytest

from job.estimates.pace import seconds_left
from job.progress import Progress, View
from serve.ask.ask import CallCounts
from serve.ask.limiter import Limiter, Limits, Outcome

RECORDS = 30
"""Of a pack."""
TOKENS, SECONDS = 5000, 3.5
"""Of a call."""


def looks(limits: Limits, packs: int, seconds: float) -> list[tuple[float, float | None]]:
    """When the board was looked at, and the time left that was told: twice a second of a run of
    `packs` packs whose calls take `seconds`, the last entry at its end."""
    limiter, now, next_look, sent = Limiter(limits, 0.0), 0.0, 0.0, 0
    flying: list[tuple[float, str]] = []
    told: list[tuple[float, float | None]] = []
    while sent < packs or flying:
        if sent < packs and not limiter.stats(now).waiting["fast"]:
            limiter.enqueue(str(sent), "fast", TOKENS)
        step = limiter.step(now)
        for lease in step.granted:
            sent += 1
            heapq.heappush(flying, (now + seconds, lease.id))
        if step.granted:
            continue
        if now >= next_look:
            waiting = (packs - sent) * RECORDS
            view = View(
                asking=Progress(packs=sent, packed_records=sent * RECORDS, waiting_fast=waiting),
                calls=CallCounts(requests=sent, tokens_in=sent * TOKENS),
                limiter=asdict(limiter.stats(now)),
                facts={"estimates": {"seconds_a_call": seconds}},
                slices=1,
            )
            told.append((now, seconds_left(view, 1)))
            next_look = now + 0.5
        now = min(step.wake_at, flying[0][0] if flying else step.wake_at, next_look)
        while flying and flying[0][0] <= now:
            limiter.settle(heapq.heappop(flying)[1], Outcome("ok", tokens=TOKENS), now)
    return [*told, (now, None)]


@pytest.mark.parametrize(
    "limits",
    [
        Limits(rpm=60, burst=60),
        Limits(rpm=60, burst=1),
        Limits(rpm=300, burst=20),
        Limits(tpm=200_000),
        Limits(rpm=600, tpm=200_000),
        Limits(max_concurrency=10),
    ],
)
def test_the_time_left_is_right_once_the_concurrency_has_grown(limits: Limits) -> None:
    told = looks(limits, 118, SECONDS)
    end = told[-1][0]
    for now, left in told:
        # It grows with every call that goes well, from five on.
        if now > 4 * SECONDS and left is not None:
            assert left == pytest.approx(end - now, rel=0.2, abs=SECONDS)
    assert sum(left is not None for _, left in told) > len(told) / 2


def a_view(**changes: int) -> View:
    asking = Progress(packs=10, packed_records=100, **changes)
    facts = {"estimates": {"seconds_a_call": 1.0}}
    return View(asking=asking, slices=1, records=200, facts=facts, limiter={"concurrency": 1})


def test_nothing_is_told_before_the_first_pack_or_at_the_end() -> None:
    assert seconds_left(View(asking=Progress(waiting_fast=10)), 1) is None
    assert seconds_left(a_view(answered=100), 1) is None


def test_what_was_not_read_yet_counts() -> None:
    assert seconds_left(a_view(answered=100, waiting_fast=100), 1) == pytest.approx(11.0)
    assert seconds_left(a_view(answered=100, waiting_fast=100), 4) == pytest.approx(71.0)


def test_a_run_that_recalls_does_not_wait_for_what_it_will_recall() -> None:
    assert seconds_left(a_view(answered=10, recalled=190), 2) == pytest.approx(2.0)
