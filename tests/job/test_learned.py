"""What the asking learns is kept for the next run, and what it saves on the way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from job.analyse.learned import Keeper, around_name, estimates_name
from job.analyse.requests import build_request
from job.analyse.stored import AskSettings
from job.estimates.kept import decode_kept
from job.estimates.reserve import LEARN_FROM, RESERVE_TOKENS
from job.pack.packing import make_item
from serve.ask.settings import Provider
from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from tests.job.dispatching import dispatcher
from tests.job.test_dispatch import FAST, day

HERE = Provider(base_url="http://127.0.0.1:1/v1", models=("m",))
NAME = estimates_name(HERE, AskSettings("m", "en"))


class Learned:
    """A store of what was learned that can be away."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.away = False

    async def learned(self, name: str) -> bytes | None:
        if self.away:
            raise OSError("the store is away")
        return self.held.get(name)

    async def keep_learned(self, name: str, value: bytes) -> None:
        if self.away:
            raise OSError("the store is away")
        self.held[name] = value


async def ask(store: Learned, records: int, **simulated: Any) -> int:
    """A run about so many records: output tokens it kept free for ten answers at its start."""
    with SimulatedProvider(Settings(**FAST, **simulated)) as provider:
        async with dispatcher(provider.base_url) as asking:
            keeper = Keeper(store, NAME, asking.learning)
            await keeper.load()
            reserve = asking.fit.reserve.needed("operation", "fast", 10)
            await asking.submit(day(records))
            assert asking.idle
            await keeper.save()
    return reserve


async def test_a_second_run_begins_with_the_reserve_and_the_timeouts_of_the_first() -> None:
    store = Learned()
    assert await ask(store, 2 * LEARN_FROM) == 10 * RESERVE_TOKENS
    (first,) = decode_kept(store.held[NAME]).runs
    known = first.answers["operation", "fast"]
    assert known.n == 2 * LEARN_FROM
    assert await ask(store, 10) < 10 * RESERVE_TOKENS
    assert len(decode_kept(store.held[NAME]).runs) == 2


async def test_two_runs_at_once_keep_what_both_have_learned() -> None:
    store = Learned()
    await asyncio.gather(ask(store, 60), ask(store, 70))
    kept = decode_kept(store.held[NAME]).runs
    assert sorted(run.answers["operation", "fast"].n for run in kept) == [60, 70]


async def test_a_store_that_is_away_or_damaged_costs_the_estimates_and_nothing_else() -> None:
    store = Learned()
    store.held[NAME] = b"\x00 no json"
    assert await ask(store, 60) == 10 * RESERVE_TOKENS
    assert len(decode_kept(store.held[NAME]).runs) == 1
    store.away = True
    assert await ask(store, 60) == 10 * RESERVE_TOKENS


async def test_a_run_that_asked_nothing_keeps_nothing() -> None:
    store = Learned()
    assert await ask(store, 0) == 10 * RESERVE_TOKENS
    assert store.held == {}


async def test_rows_that_are_lost_are_seen_to_be_sent_again() -> None:
    store = Learned()
    await ask(store, 60, fault_schedule={1: "missing"})
    (run,) = decode_kept(store.held[NAME]).runs
    assert run.again.mean > 1.0 or run.repeats.number.mean > 0.0


async def test_after_thirty_quick_calls_the_next_is_given_up_after_seconds() -> None:
    with SimulatedProvider(Settings(**FAST)) as provider:
        async with dispatcher(provider.base_url, mode="single") as asking:
            items = [make_item(day(1)[0])]
            before = build_request(items, asking.settings, asking.fit, repair=False)
            await asking.submit(day(30))
            after = build_request(items, asking.settings, asking.fit, repair=False)
            items[0].rounds = 1
            again = build_request(items, asking.settings, asking.fit, repair=False)
    assert after.timeout < 8 < 15 < before.timeout
    assert again.timeout > 15


@pytest.mark.parametrize(
    "other",
    [
        AskSettings("m2", "en"),
        AskSettings("m", "zh"),
        AskSettings("m", "en", "single"),
        AskSettings("m", "en", own="mind the gap"),
    ],
)
def test_what_changes_the_calls_has_estimates_of_its_own(other: AskSettings) -> None:
    assert estimates_name(HERE, other) != NAME
    assert around_name(HERE, other) != around_name(HERE, AskSettings("m", "en"))
