"""Packs that find their size, as the dispatcher sends them to a real server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from job.analyse.dispatch import Dispatcher
from job.analyse.learning import Learning
from job.analyse.requests import instruction_tokens
from job.analyse.stored import AskSettings
from job.commands.preview_answers import AnswerTokens
from job.commands.preview_asking import Asking
from job.commands.preview_packs import PlannedPacks
from job.estimates.kept import Kept, earlier_of
from job.pack.cost import Pack
from job.pack.packing import Fit
from job.records import Record
from serve.ask.settings import LimitSettings, Provider
from serve.simulated import FaultKind, SimulatedProvider
from serve.simulated_settings import Settings
from tests.job.dispatching import dispatcher
from tests.job.make import record

FAST: dict[str, Any] = {"time_scale": 200.0, "context": 16_384}
LIMITS = {"rpm": 60.0}
"""What the controller is told; the permits of these tests have no limit of their own."""


def day(name: str, n: int) -> list[Record]:
    return [record(f"{name} {i}: all is well, and nothing more is to be said") for i in range(n)]


def finding(asking: Dispatcher, pack_tokens: int | None = None) -> Dispatcher:
    asking.learning = Learning.about(asking.asker.provider, asking.fit, pack_tokens)
    return asking


async def answered(asking: Dispatcher, records: Sequence[Record]) -> None:
    assert {result.via for result in await asking.submit(records)} == {"answered"}


async def test_packs_grow_under_a_request_limit_and_the_next_run_begins_with_them() -> None:
    with SimulatedProvider(Settings(**FAST)) as server:
        async with dispatcher(server.base_url, context=16_384, limits=LIMITS) as asking:
            finding(asking)
            # Until the length of answers is known fewer rows fit.
            await answered(asking, day("first", 100))
            await answered(asking, day("then", 300))
            grown = asking.fit.wire["fast"]
            assert grown > 5000
            assert asking.facts()["packs"]["tokens"]["fast"] == grown
            kept = asking.learning.entry("run", began=1.0)
        async with dispatcher(server.base_url, context=16_384, limits=LIMITS) as asking:
            finding(asking).learning.begin_with(earlier_of(Kept((kept,))))
            assert asking.fit.wire["fast"] == grown
            await answered(asking, day("second", 10))


async def test_cut_answers_make_packs_smaller() -> None:
    cuts: dict[int, FaultKind] = dict.fromkeys(range(1, 40), "cut")
    with SimulatedProvider(Settings(**FAST, fault_schedule=cuts)) as server:
        async with dispatcher(server.base_url, context=16_384, limits=LIMITS) as asking:
            finding(asking)
            await answered(asking, day("cut", 1000))
            size = asking.learning.size
    assert size is not None
    assert [change["tokens"] for change in size.facts()["changes"]][:2] == [5000, 4000]


async def test_rows_asked_again_by_themselves_say_nothing_of_the_size() -> None:
    with SimulatedProvider(Settings(**FAST, fault_schedule={1: "cut"})) as server:
        async with dispatcher(server.base_url, context=16_384, limits=LIMITS) as asking:
            finding(asking)
            await answered(asking, day("cut", 100))
            seen = asking.facts()["packs"]["by_size"]
        assert server.stats()["requests"] == 3
    assert sum(one["calls"] for one in seen) == 1


async def test_a_size_that_the_user_gave_stays() -> None:
    with SimulatedProvider(Settings(**FAST)) as server:
        async with dispatcher(server.base_url, context=16_384, limits=LIMITS) as asking:
            asking.fit.wire = asking.fit.with_pack_tokens(1500).wire
            finding(asking, 1500)
            await answered(asking, day("fixed", 300))
            assert asking.fit.wire == {"fast": 1500, "slow": 1200}
            assert asking.facts()["packs"]["why"] == "fixed"


def test_a_plan_foresees_packs_that_grow_and_rows_that_get_lost() -> None:
    limits = LimitSettings(rpm=60, burst=1)
    here = Provider(
        base_url="http://127.0.0.1:1/v1", models=("simulated",), context=16_384, limits=limits
    )
    first = foreseen(here, [])
    assert first.fit.wire["fast"] > 5000
    # As many rows lost as an earlier run saw at the sizes that it tried.
    lossy = foreseen(here, [Pack(size, 100, 4, 5260, 3000, 4.0) for size in (5000, 6250) * 3])
    assert lossy.fit.wire["fast"] < first.fit.wire["fast"]


def foreseen(here: Provider, seen: Sequence[Pack]) -> PlannedPacks:
    """The packs of 1,500 records at `here`, where packs were `seen` before."""
    fit = Fit(here.context, None, instruction_tokens("en"))
    size = Learning.about(here, fit, None).size
    assert size is not None
    for pack in seen:
        size.observe(pack)
    fit.wire = size.wire
    planned = PlannedPacks(
        iter(day("foreseen", 1500)), AskSettings("simulated", "en"), fit, AnswerTokens("en"), size
    )
    Asking(here.limits.to_limits()).run(planned)
    return planned


def test_single_mode_has_no_size_to_find() -> None:
    fit = Fit(8192, None, {}, mode="single")
    assert Learning(fit).size is None


def test_parts_of_a_record_do_not_depend_on_the_size_found() -> None:
    fit = Fit(16_384, None, {("operation", "slow"): 260})
    before = fit.max_part("operation")
    fit.wire = {"fast": 1049, "slow": 839}
    assert fit.max_part("operation") == before == 4000
    assert fit.with_pack_tokens(1000).max_part("operation") == 800
