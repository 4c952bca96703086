"""One way of asking about the records of a trial, carried out.

Invariant: everything is asked anew, whatever was answered before, but for what this very trial was
answered (`kept.py`); a way that was stopped gives no answers to compare.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from job.analyse.analyst import exit_code_of, make_dispatcher
from job.analyse.dispatch import Dispatcher
from job.analyse.stored import AskSettings
from job.compare.comparison import Side
from job.compare.positions import Place
from job.errors import StoppedEarly, UsageError
from job.estimates.kept import Earlier
from job.records import Kind, Lane, Record
from job.spend.prices import known_prices
from job.trial.kept import Kept, Places
from serve.ask.contract import Usage
from serve.ask.limiter_host import Permits
from serve.ask.settings import Prices, Provider
from serve.ask.spend import Call, Ended, cost_of
from serve.ask.spend_host import Spend

LOOK_SECONDS = 0.5
"""How often who watches is told how far it is."""

Watch = Callable[[str, Dispatcher], Awaitable[None]]
"""Sees how far the asking of the way with this name is, every LOOK_SECONDS and at its end; may stop
it."""


class Unfinished(StoppedEarly):
    """Some of the records were not asked, though others still may be: the cap has no room for one
    of several models, or a call would not have ended before the deadline."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way of asking, and what to call it. `pack_tokens`: None where it finds itself; `earlier`:
    what earlier runs have learned of it, so that packs are as big as in a run."""

    name: str
    provider: Provider
    ask: AskSettings
    pack_tokens: int | None
    earlier: Earlier = field(default_factory=Earlier)


@dataclass(slots=True)
class Meter:
    """A `Spend` that knows what the answers to one way of asking cost: those whose model has a
    price, as the provider counted them."""

    spend: Spend
    prices: Mapping[str, Prices]
    total: Decimal = Decimal(0)
    _calls: dict[str, Call] = field(default_factory=dict)

    async def reserve(self, ticket: str, call: Call) -> None:
        """See `Spend.reserve`."""
        self._calls[ticket] = call
        await self.spend.reserve(ticket, call)

    async def settle(self, ticket: str, ended: Ended, usage: Usage | None = None) -> None:
        """See `Spend.settle`."""
        call = self._calls.pop(ticket, None)
        if call is not None and usage is not None and call.model in self.prices:
            self.total += cost_of(usage, self.prices[call.model])
        await self.spend.settle(ticket, ended, usage)


async def ask_way(
    way: Way,
    records: Sequence[Record],
    permits: Permits,
    spend: Spend,
    store: Kept,
    watch: Watch | None = None,
    of: int = 0,
) -> Side:
    """Ask about `records` in this way; they stand for `of` (0: for themselves). Raises
    StoppedEarly, or UsageError where URL, model or key are wrong, if anything ended it before each
    record had its answer or had failed; Unfinished where some were left out and nothing ended."""
    known = known_prices(way.provider, way.ask.tiers)
    prices = {model: one.prices for model, one in known.items()}
    meter = Meter(spend, prices)
    dispatcher = make_dispatcher(
        way.provider, way.ask, way.pack_tokens, permits, store, spend=meter
    )
    dispatcher.learning.begin_with(way.earlier)
    store.begin(records, way.ask)
    dispatcher.witness = store.places.see
    running = asyncio.create_task(dispatcher.run())
    watching = asyncio.create_task(_keep_looking(way.name, dispatcher, watch))
    try:
        results = await dispatcher.submit(records)
        stopped = dispatcher.stopped
        if running.done():
            running.result()
    finally:
        for task in (running, watching):
            task.cancel()
        await asyncio.gather(running, watching, return_exceptions=True)
        dispatcher.refresh()
        if watch is not None:
            await watch(way.name, dispatcher)
        await dispatcher.asker.aclose()
    unasked = [result for result in results if result.via == "unasked"]
    if unasked:
        wrong = exit_code_of(stopped) == UsageError.exit_code
        early = Unfinished if stopped is None else StoppedEarly
        raise (UsageError if wrong else early)(str(unasked[0].reason))
    return Side(
        way.name,
        results,
        _by_record(store.places, records),
        dispatcher.asker.counts,
        dispatcher.progress.busy,
        meter.total if prices else None,
        next(iter(prices.values())).currency if prices else "",
        of > len(records) and _all_short(store.places, records),
    )


async def _keep_looking(name: str, dispatcher: Dispatcher, watch: Watch | None) -> None:
    while watch is not None:
        dispatcher.refresh()
        await watch(name, dispatcher)
        await asyncio.sleep(LOOK_SECONDS)


def _by_record(places: Places, records: Sequence[Record]) -> Mapping[str, Place]:
    """In the order of `records`, not that of the answers."""
    return {r.id: places.held[r.id] for r in records if r.id in places.held}


def _all_short(places: Places, records: Sequence[Record]) -> bool:
    """Whether there were packs, and each held all records of its kind: none was full then."""
    packs: dict[tuple[Kind, Lane], set[int]] = {}
    for record in records:
        if record.id in places.held:
            packs.setdefault((record.kind, record.lane), set()).add(places.held[record.id].pack)
    return bool(packs) and all(len(of_kind) == 1 for of_kind in packs.values())
