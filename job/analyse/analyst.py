"""The analysts: blocks of records in, blocks of results out, each record exactly once.

Invariant: a block's results are its records in the same order, so a block that Ray runs again
(a killed worker) yields the same rows; what was answered before is recalled, not paid again.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from job.analyse.dispatch import Dispatcher
from job.analyse.learned import Keeper, estimates_name
from job.analyse.learning import Learning
from job.analyse.owner import Owner
from job.analyse.requests import instruction_tokens
from job.analyse.stored import AskSettings, Store
from job.pack.packing import Fit
from job.ration.deadline import Deadline
from job.ration.importance import ranks_in
from job.records import Record, Result, results_to_table, table_to_records
from serve.ask.answers_actor import RayAnswers
from serve.ask.ask import Asker
from serve.ask.errors import Misconfigured
from serve.ask.limiter_actor import RayPermits
from serve.ask.limiter_host import Permits
from serve.ask.settings import Provider, key_variable
from serve.ask.spend_actor import RaySpend
from serve.ask.spend_host import Spend

POST_SECONDS = 0.5
"""How often the board hears how far the asking is."""


@dataclass(frozen=True, slots=True)
class AnalyseSettings:
    """Everything the asking actor needs: plain values and actor handles, no key. `pack_tokens`:
    the size of packs, None where it finds itself. `rationed`: blocks come in the order of
    importance, and there may be no time (`deadline`) or no money for the last. `spend`: the actor
    that keeps account of what is spent. `model`: the actor of a model of the cluster, which ends
    with this handle (see `local_model.py`)."""

    provider: Provider
    ask: AskSettings
    pack_tokens: int | None
    answers: Any
    board: Any
    owner: Owner
    spend: Any
    rationed: bool = False
    deadline: Deadline | None = None
    model: Any = None


class Analyse:
    """Asks the model about blocks of records. A plain class with several calls at once: the
    asking lives on a loop of its own, so a full output queue never freezes a call in flight
    (DESIGN 8)."""

    def __init__(self, settings: AnalyseSettings) -> None:
        self._settings = settings
        self._name = uuid.uuid4().hex
        self._loop = asyncio.new_event_loop()
        self._spend = RaySpend(settings.spend)
        self._dispatcher = self._on_loop_thread(self._build)
        name = estimates_name(settings.provider, settings.ask)
        self._keeper = Keeper(RayAnswers(settings.answers), name, self._dispatcher.learning)
        self._running = asyncio.run_coroutine_threadsafe(self._run(), self._loop)

    def __call__(self, block: pa.Table) -> pa.Table:
        """The results of a block of RECORD_SCHEMA as a block of RESULT_SCHEMA."""
        records = table_to_records(block)
        submitting = self._submit(records, ranks_in(block))
        submitted = asyncio.run_coroutine_threadsafe(submitting, self._loop)
        results = submitted.result()
        if self._running.done():
            self._running.result()
        return results_to_table(results)

    def _on_loop_thread(self, build: Callable[[], Dispatcher]) -> Dispatcher:
        threading.Thread(target=self._loop.run_forever, name="asking", daemon=True).start()

        async def built() -> Dispatcher:
            return build()

        return asyncio.run_coroutine_threadsafe(built(), self._loop).result()

    def _build(self) -> Dispatcher:
        settings = self._settings
        provider = settings.provider
        permits = RayPermits(provider.base_url, key_variable(provider), provider.limits.to_limits())
        store = RayAnswers(settings.answers)
        alive = settings.owner.watch().alive
        return make_dispatcher(
            *(provider, settings.ask, settings.pack_tokens, permits, store, alive),
            rationed=settings.rationed,
            spend=self._spend,
        )

    async def _run(self) -> None:
        await self._keeper.load()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._dispatcher.run())
            group.create_task(self._keep_posting())
            group.create_task(self._keeper.keep_saving())

    async def _submit(self, records: Sequence[Record], ranks: Sequence[int] | None) -> list[Result]:
        results = await self._dispatcher.submit(records, ranks)
        if self._dispatcher.idle:
            await self._keeper.save()
        await self._post()
        return results

    async def _keep_posting(self) -> None:
        while True:
            await self._post()
            await asyncio.sleep(POST_SECONDS)

    async def _post(self) -> None:
        """Tell the board how far it is, and hear whether to stop."""
        dispatcher, board = self._dispatcher, self._settings.board
        if self._settings.deadline is not None:
            records = await board.records.remote()
            dispatcher.time_left.until = self._settings.deadline.asking_ends(records)
        dispatcher.refresh()
        stop = await board.post.remote(
            self._name,
            dispatcher.progress,
            dispatcher.asker.counts,
            asdict(await dispatcher.asker.permits.stats()),
            dispatcher.asker.capabilities.json,
            dispatcher.facts() | {"spend": self._spend.seen.as_facts()},
        )
        if stop is not None:
            dispatcher.stop(stop)
        elif dispatcher.stopped is not None:
            await board.stop.remote(str(dispatcher.stopped), exit_code_of(dispatcher.stopped))


def make_dispatcher(
    provider: Provider,
    ask: AskSettings,
    pack_tokens: int | None,
    permits: Permits,
    store: Store,
    wanted: Callable[[], bool] = lambda: True,
    rationed: bool = False,
    spend: Spend | None = None,
) -> Dispatcher:
    """Who asks `provider` as `ask` says. `pack_tokens`: see `AnalyseSettings`; `wanted` and
    `rationed`: see `Dispatcher`; `spend`: see `Asker`."""
    fit = Fit(
        context=provider.context,
        max_output=provider.max_output,
        instructions=instruction_tokens(ask.language, ask.own),
        mode=ask.mode,
    )
    if pack_tokens is not None:
        fit = fit.with_pack_tokens(pack_tokens)
    asker = Asker(provider, ask.best_model, permits, spend)
    dispatcher = Dispatcher(asker, store, ask, fit, wanted, rationed=rationed)
    dispatcher.learning = Learning.about(provider, fit, pack_tokens)
    return dispatcher


def exit_code_of(reason: object) -> int:
    """What a run ends with that stopped for `reason`: 2 when URL, model or key are wrong, else 4
    (stopped early, resumable)."""
    return 2 if isinstance(reason, Misconfigured) else 4
