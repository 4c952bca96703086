"""A trial that was stopped goes on with what it was answered, and with nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, replace

import orjson
import pytest

from job.analyse.stored import AskSettings, Stored, decode, encode, record_key
from job.compare.positions import Place
from job.errors import StoppedEarly
from job.records import Answer
from job.trial.kept import GIVEN_BACK_SECONDS, Kept
from job.trial.trial import Sides, part_of
from serve.ask.limiter import Limits
from serve.ask.limiter_host import InProcessPermits
from serve.simulated import SimulatedProvider
from tests.job.trials import NoCap, compared, day, make_trial, provider_settings

ASK = AskSettings("simulated", "en", "packed")
RECORDS = 60


class Held:
    """A store in memory; `now` is when what is put is stored."""

    def __init__(self) -> None:
        self.rows: dict[bytes, tuple[float, bytes]] = {}
        self.now = 1000.0

    async def get_many(
        self, keys: Sequence[bytes], since: float | None = None
    ) -> dict[bytes, bytes]:
        held = {key: self.rows[key] for key in keys if key in self.rows}
        return {key: value for key, (at, value) in held.items() if at >= (since or 0)}

    async def put_many(self, items: Sequence[tuple[bytes, bytes]], replace: bool = False) -> None:
        for key, value in items:
            if replace or key not in self.rows:
                self.rows[key] = (self.now, value)

    def kept(self, name: str) -> Kept:
        kept = Kept(name, self, clock=lambda: self.now)
        kept.begin(day(3), ASK)
        return kept


def test_only_the_same_way_of_the_same_trial_is_given_its_answers_back() -> None:
    held, (first, other, _) = Held(), day(3)
    key = record_key(first, ASK)
    value = encode(Stored(Answer("normal", ()), False, "simulated"))
    kept = held.kept("run packed")
    kept.places.held[first.id] = Place(4, 2, 30, True)

    async def ask() -> None:
        await kept.put_many([(key, value)])
        # A run would recall nothing of it, nor would another trial or another way.
        assert await held.get_many([key]) == {}
        assert await held.kept("another run packed").get_many([key]) == {}
        assert await held.kept("run single").get_many([key]) == {}
        again = held.kept("run packed")
        assert await again.get_many([key, record_key(other, ASK)]) == {key: value}
        assert again.rows == {key: value}
        assert again.places.held == {first.id: Place(4, 2, 30, True)}
        # The store's own commands read the row as any other.
        (_, row) = next(iter(held.rows.values()))
        assert decode(row) == decode(value)
        assert orjson.loads(row)["place"] == asdict(Place(4, 2, 30, True))
        held.now += GIVEN_BACK_SECONDS + 1
        assert await held.kept("run packed").get_many([key]) == {}

    asyncio.run(ask())


@pytest.mark.parametrize("damaged", [b"{", b"[]", b'{"place": 3}', b'{"place": {"pack": 1}}'])
def test_a_damaged_row_is_no_answer(damaged: bytes) -> None:
    held, first = Held(), day(1)[0]
    key = record_key(first, ASK)
    kept = held.kept("run packed")

    async def ask() -> None:
        await kept.put_many([(key, b'{"outcome": 1}')])
        held.rows = dict.fromkeys(held.rows, (held.now, damaged))
        found = await held.kept("run packed").get_many([key])
        assert decode(found[key]) is None

    asyncio.run(ask())


@pytest.mark.slow
def test_a_trial_that_was_stopped_pays_for_nothing_twice() -> None:
    held = Held()

    def ask(server: SimulatedProvider) -> Sides:
        trial = replace(make_trial(server.base_url), keeping=lambda name: Kept(name, held))
        held.now = Kept().clock()
        permits = InProcessPermits(Limits(max_concurrency=4))
        return asyncio.run(trial.ask(day(RECORDS), permits, NoCap()))

    with (
        SimulatedProvider(provider_settings(quota_after=40)) as server,
        pytest.raises(StoppedEarly),
    ):
        ask(server)
    with SimulatedProvider(provider_settings()) as server:
        sides = ask(server)
        rest = server.stats()["requests"]
    packed = 3
    assert rest <= RECORDS + part_of(RECORDS) + packed - 30
    assert all(result.outcome for side in sides for result in side.results)
    # The places of the packs that were answered before are known.
    assert len(sides[1].places) == RECORDS
    assert compared(sides).verdict.reason == "alike"
