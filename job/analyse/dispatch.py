"""Records in, results out: recall, then packs formed at the moment their permit arrives.

Invariant: every record that is submitted gets exactly one result, whatever the provider, the store
or the user do; every answer that is used is in the store before its record's result is handed on;
two records with equal keys are asked once.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from job.analyse.contract import (
    Fail,
    Keep,
    Split,
    Step,
    Stop,
    Together,
    Wait,
    after_error,
    after_reply,
)
from job.analyse.entries import Entry
from job.analyse.learning import Learning
from job.analyse.parts import MAX_PARTS, split_item
from job.analyse.patience import reason_to_give_up
from job.analyse.requests import SCHEMA_TOKENS, build_request, lane_of, wire_tokens
from job.analyse.stored import AskSettings, Store, Stored, decode, encode, record_key
from job.analyse.waiting import LINGER_SECONDS, Waiting
from job.pack import Fit, Item, make_item
from job.progress import BusyClock, Progress
from job.records import Record, Result
from job.validate import validate
from serve.ask.ask import Asker
from serve.ask.contract import Class, Reply, Request
from serve.ask.errors import AskError, Misconfigured, Refused
from serve.ask.limiter import Lease

REFUSED_ALIKE = 8
"""Records refused alone in the same words, before anything was ever answered, that show a refusal
to be about the request as such and not about what a record says."""


@dataclass(slots=True)
class Dispatcher:
    """Asks about records with as few calls as the contract allows. Lives on one event loop.

    `wanted` is asked before each call: False ends the asking, since nobody waits for the answers.
    `linger`: see `waiting.py`.
    """

    asker: Asker
    store: Store
    settings: AskSettings
    fit: Fit
    wanted: Callable[[], bool] = lambda: True
    linger: float = LINGER_SECONDS
    progress: Progress = field(default_factory=Progress)
    stopped: AskError | str | None = None
    learning: Learning = field(init=False)
    _waiting: Waiting = field(init=False)
    _entries: dict[bytes, Entry] = field(default_factory=dict)
    _owners: dict[Item, Entry] = field(default_factory=dict)
    _refused: Counter[str] = field(default_factory=Counter)
    _busy: BusyClock = field(default_factory=BusyClock)

    def __post_init__(self) -> None:
        self._waiting = Waiting(self.fit, self.linger)
        self.learning = Learning(self.fit)

    async def submit(self, records: Sequence[Record]) -> list[Result]:
        """The results of `records`, in their order, when each has one."""
        ends: list[asyncio.Future[Result]] = []
        fresh: list[Entry] = []
        for record in records:
            key = record_key(record, self.settings)
            entry = Entry(record, key, asyncio.get_running_loop().create_future())
            ends.append(entry.future)
            entry.future.add_done_callback(self._count)
            held = self._entries.setdefault(key, entry)
            if held is entry:
                fresh.append(entry)
            else:
                held.followers.append(entry)
        await self._recall(fresh)
        return [await end for end in ends]

    async def _recall(self, entries: Sequence[Entry]) -> None:
        """End the entries whose answers are stored, and let the others wait to be asked."""
        keys = [entry.key for entry in entries]
        known: dict[bytes, bytes] = {}
        try:
            known = await self.store.get_many(keys, self.settings.since)
        except Exception as error:
            self.stop(f"the store of answers failed: {error}")
        for entry in entries:
            stored = decode(known[entry.key]) if entry.key in known else None
            if stored is not None:
                entry.recall(stored)
                self._drop(entry)
            elif self.stopped is not None:
                entry.leave_unasked(str(self.stopped))
                self._drop(entry)
            else:
                self._enqueue(entry)

    def stop(self, reason: AskError | str) -> None:
        """Ask nothing more. Calls on the wire are waited for, one timeout at most; all that waits
        stays unasked."""
        if self.stopped is None:
            self.stopped = reason
        self.asker.stop()
        for item in self._waiting.drain():
            self._leave(item)

    async def run(self) -> None:
        """Ask until cancelled. Whatever ends it, no record is left waiting."""
        waiting = self._waiting
        try:
            async with asyncio.TaskGroup() as group:
                for lane in ("fast", "slow"):
                    ready, take = (
                        partial(waiting.pack_ready, lane),
                        partial(waiting.take_pack, lane),
                    )
                    group.create_task(self._seek(lane, ready, take, group))
                group.create_task(
                    self._seek("retry", waiting.batch_ready, waiting.take_batch, group)
                )
                group.create_task(self._watch())
        finally:
            self.stop("the asking was ended")
            for item in list(self._owners):
                self._leave(item)

    async def _seek(
        self,
        cls: Class,
        ready: Callable[[], Awaitable[int]],
        take: Callable[[], Together],
        group: asyncio.TaskGroup,
    ) -> None:
        """Send one class of packs, each taken at the moment its permit has come."""
        while True:
            wanted = await ready()
            with self._busy.running():
                lease = await self.asker.acquire(cls, wanted)
            batch = take()
            if not self.wanted():
                self.stop("the command that started this run is gone")
            if self.stopped is not None:
                for item in batch.items:
                    self._leave(item)
            items = [item for item in batch.items if item in self._owners]
            if items:
                group.create_task(self._send(items, batch.repair, lease))
            else:
                await self.asker.give_back(lease)

    async def _send(self, items: Sequence[Item], repair: bool, lease: Lease) -> None:
        """Ask about `items` and do what the outcome demands."""
        self.fit.overhead = 0 if self.asker.capabilities.json == "schema" else SCHEMA_TOKENS
        request = build_request(items, self.settings, self.fit, repair)
        self.progress.begin(len(items))
        model = self.settings.model
        try:
            with self._busy.running():
                reply = await self.asker.ask(request, lease)
        except AskError as error:
            steps = after_error(items, error, repair)
            self._note_refusal(items, error)
        else:
            steps = self._judge(items, request, reply, repair)
            model = reply.model
        finally:
            self.progress.in_flight -= 1
        await self._do(steps, model)

    def _judge(
        self, items: Sequence[Item], request: Request, reply: Reply, repair: bool
    ) -> list[Step]:
        """What the reply is worth; what it teaches is learned."""
        self.progress.first = self.progress.first or time.time()
        self.progress.last = time.time()
        local = {str(number): item for number, item in enumerate(items, 1)}
        texts = {key: item.text for key, item in local.items()}
        verdict = validate(reply.text, reply.finish_reason, texts)
        self.learning.observe(items, request, reply, verdict)
        room = self.fit.room(items[0].record.kind, lane_of(items), wire_tokens(items))
        limited = self.asker.capabilities.output_limit != "none"
        return after_reply(local, verdict, repair, limited and request.max_output < room)

    def _note_refusal(self, items: Sequence[Item], error: AskError) -> None:
        """Stop where it is not a record that is refused but everything."""
        if self.progress.first is None and len(items) == 1 and isinstance(error, Refused):
            self._refused[error.message] += 1
            if self._refused[error.message] >= REFUSED_ALIKE:
                alike = f"every request is refused alike: {error.message}"
                self.stop(Misconfigured(alike, error.status))

    async def _do(self, steps: Sequence[Step], model: str) -> None:
        """Carry the steps out; used answers are stored first."""
        finished: list[Entry] = []
        for step in steps:
            if isinstance(step, Keep):
                entry = self._owners.pop(step.item, None)
                if entry is not None and entry.keep(step.item, step.answer, step.review):
                    finished.append(entry)
            elif isinstance(step, Fail):
                entry = self._owners.pop(step.item, None)
                if entry is not None:
                    entry.fail(step.reason, step.message, step.item.attempts)
                    self._drop(entry)
            elif isinstance(step, Stop) or self.stopped is not None:
                if isinstance(step, Stop):
                    self.stop(step.error)
                for item in [step.item] if isinstance(step, Split) else step.items:
                    self._leave(item)
            elif isinstance(step, Split):
                self._split(step.item, self._owners[step.item])
            elif isinstance(step, Wait):
                for item in step.items:
                    self._waiting.push(item, step.last)
            else:
                self._waiting.push_batch(step, first=self.progress.first is None)
        await self._finish(finished, model)

    async def _finish(self, entries: Sequence[Entry], model: str) -> None:
        """Store the answers of `entries`, then end them."""
        stored = [(entry, Stored(entry.merged(), entry.review, model)) for entry in entries]
        if stored:
            rows = [(entry.key, encode(value)) for entry, value in stored]
            try:
                await self.store.put_many(rows, replace=self.settings.since is not None)
            except Exception as error:
                self.stop(f"the store of answers failed: {error}")
        for entry, value in stored:
            entry.answer(value)
            self._drop(entry)

    def _enqueue(self, entry: Entry) -> None:
        item = make_item(entry.record)
        if item.line_tokens > self.fit.max_part(item.record.kind):
            self._split(item, entry)
        else:
            self._own(item, entry)
            self._waiting.push(item)

    def _own(self, item: Item, entry: Entry) -> None:
        entry.open.add(item)
        self._owners[item] = entry

    def _split(self, item: Item, entry: Entry) -> None:
        """Replace `item` by its parts."""
        entry.open.discard(item)
        self._owners.pop(item, None)
        pieces = split_item(item, self.fit)
        if pieces is None or entry.parts + len(pieces) > MAX_PARTS:
            entry.fail("too_large", None, item.attempts)
            self._drop(entry)
            return
        self.progress.splits += 1
        for piece in pieces:
            self._own(piece, entry)
            self._waiting.push(piece)

    def _leave(self, item: Item) -> None:
        """End the record of `item` unasked, unless a usable answer to it was paid for."""
        entry = self._owners.pop(item, None)
        if entry is None:
            return
        if item.draft is not None and entry.keep(item, item.draft, review=True):
            entry.answer(Stored(entry.merged(), review=True, model=self.settings.model))
        else:
            entry.leave_unasked(str(self.stopped))
        self._drop(entry)

    def _drop(self, entry: Entry) -> None:
        for item in entry.open:
            self._owners.pop(item, None)
        if self._entries.get(entry.key) is entry:
            del self._entries[entry.key]

    def _count(self, end: asyncio.Future[Result]) -> None:
        via = end.result().via
        setattr(self.progress, via, getattr(self.progress, via) + 1)

    async def _watch(self) -> None:
        """End the run when the provider has been silent for too long."""
        while True:
            await asyncio.sleep(1)
            if not self._owners:
                self.asker.heard = max(self.asker.heard, time.monotonic())
            reason = reason_to_give_up(
                self.asker, self.progress.first is not None, time.monotonic()
            )
            if reason is not None and self.stopped is None:
                self.stop(reason)

    def facts(self) -> dict[str, Any]:
        """What was learned so far, for `timing.json`."""
        return {}

    def refresh(self) -> None:
        """Bring the numbers in `progress` up to date."""
        self.progress.busy = self._busy.seconds
        self.progress.wait(*self._waiting.counts())
