"""What becomes of each record: recalled, waiting, kept, split, failed, left unasked.

Invariant: every record that is admitted ends exactly once; every answer that is used is in the
store before its record's result is handed on; of records with equal keys one is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from job.analyse.contract import Escalate, Fail, Keep, Split, Step, Stop, Wait
from job.analyse.entries import Entry
from job.analyse.parts import MAX_PARTS, split_item
from job.analyse.routing import Routing
from job.analyse.stored import AskSettings, Store, Stored, decode, encode, record_key
from job.analyse.waiting import Waiting
from job.pack.packing import Fit, Item, make_item
from job.progress import Progress
from job.records import Record, Result
from serve.ask.errors import AskError, CapReached


@dataclass(slots=True)
class Outcomes:
    """The records that are on their way, and how each ends. `on_stop`: called when nothing more is
    to be asked; `stopped`: why that is, None while it is not. `capped`: why some of
    the models are not asked any more, None where all may be."""

    store: Store
    settings: AskSettings
    fit: Fit
    waiting: Waiting
    routing: Routing
    progress: Progress
    on_stop: Callable[[], None]
    stopped: AskError | str | None = None
    capped: CapReached | None = None
    _entries: dict[bytes, Entry] = field(default_factory=dict)
    _owners: dict[Item, Entry] = field(default_factory=dict)
    _drafted: list[Entry] = field(default_factory=list)
    _finishing: set[asyncio.Task[None]] = field(default_factory=set)

    def admit(
        self, records: Sequence[Record], ranks: Sequence[int] | None = None
    ) -> tuple[list[asyncio.Future[Result]], list[Entry]]:
        """The futures of the results of `records`, and the entries that nobody waits for yet."""
        ends: list[asyncio.Future[Result]] = []
        fresh: list[Entry] = []
        known: Sequence[int | None] = ranks or [None] * len(records)
        for record, rank in zip(records, known, strict=True):
            key = record_key(record, self.settings)
            entry = Entry(record, key, asyncio.get_running_loop().create_future(), rank=rank)
            ends.append(entry.future)
            entry.future.add_done_callback(self._count)
            held = self._entries.setdefault(key, entry)
            if held is entry:
                fresh.append(entry)
            else:
                held.followers.append(entry)
        return ends, fresh

    async def recall(self, entries: Sequence[Entry]) -> None:
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
                self.progress.from_store += 1 + len(entry.followers)
                entry.recall(stored)
                self._drop(entry)
            elif self.stopped is not None:
                entry.leave_unasked(str(self.stopped))
                self._drop(entry)
            else:
                self._enqueue(entry)

    def stop(self, reason: AskError | str) -> None:
        """Ask nothing more; all that waits stays unasked."""
        if self.stopped is None:
            self.stopped = reason
        self.on_stop()
        for item in self.waiting.drain():
            self.leave(item)

    def owns(self, item: Item) -> bool:
        """Whether the record of `item` still waits for its answer."""
        return item in self._owners

    @property
    def idle(self) -> bool:
        """Whether no record is on its way."""
        return not self._owners

    async def do(self, steps: Sequence[Step], model: str) -> None:
        """Carry the steps out; used answers, which `model` gave, are stored first."""
        finished: list[Entry] = []
        for step in self._owned(steps):
            if isinstance(step, Keep):
                self.routing.answered(step.item)
                entry = self._owners.pop(step.item)
                if entry.keep(step.item, step.answer, step.review, step.by or model):
                    finished.append(entry)
            elif isinstance(step, Fail):
                entry = self._owners.pop(step.item)
                entry.fail(step.reason, step.message, step.item.attempts)
                self._drop(entry)
            elif isinstance(step, Stop) or self.stopped is not None:
                if isinstance(step, Stop):
                    self._end_for(step.error, model)
                for item in [step.item] if isinstance(step, Split | Escalate) else step.items:
                    self.leave(item)
            elif isinstance(step, Escalate):
                self.routing.escalate(step.item)
                self.waiting.push(step.item)
            elif isinstance(step, Split):
                self._split(step.item, self._owners[step.item])
            elif isinstance(step, Wait):
                for item in step.items:
                    self.waiting.push(item, step.last)
            else:
                self.waiting.push_batch(step, first=self.progress.first is None)
        await self._finish(finished)

    def _owned(self, steps: Sequence[Step]) -> Iterator[Step]:
        """The steps for items that still wait: the record of another one ended with another part
        of it, while this part was on the wire."""
        for step in steps:
            if isinstance(step, Keep | Fail | Escalate | Split):
                if self.owns(step.item):
                    yield step
            else:
                items = tuple(item for item in step.items if self.owns(item))
                if items or isinstance(step, Stop):
                    yield replace(step, items=items)

    def _end_for(self, error: AskError, model: str) -> None:
        """Stop over what asking `model` ended with, unless another one may still be asked."""
        if isinstance(error, CapReached) and self.routing.close(model):
            self.capped = error
        else:
            self.stop(error)

    async def _finish(self, entries: Sequence[Entry]) -> None:
        """Store the answers of `entries`, then end them."""
        stored = [(entry, entry.merged()) for entry in entries]
        if stored:
            rows = [(entry.key, encode(value)) for entry, value in stored]
            try:
                await self.store.put_many(rows, replace=self.settings.since is not None)
            except Exception as error:
                self.stop(f"the store of answers failed: {error}")
        for entry, value in stored:
            self._answer(entry, value)
            self._drop(entry)

    def _answer(self, entry: Entry, value: Stored) -> None:
        self.progress.from_store += len(entry.followers)
        entry.answer(value)

    def _enqueue(self, entry: Entry) -> None:
        item = make_item(entry.record)
        item.tier = self.routing.begin(entry.record.text)
        if item.line_tokens > self.fit.max_part(item.record.kind):
            self._split(item, entry)
        else:
            self._own(item, entry)
            self.waiting.push(item)

    def _own(self, item: Item, entry: Entry) -> None:
        item.rank = entry.rank
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
            self.waiting.push(piece)

    def leave(self, item: Item, reason: str | None = None) -> None:
        """End the record of `item` unasked, or with a usable answer to it that was paid for, once
        that is stored (`settle`). `reason`: why, None: as all that is left."""
        entry = self._owners.get(item)
        if entry is None:
            return
        parts = tuple(entry.open)
        if entry.keep_drafts():
            for part in parts:
                del self._owners[part]
            self._drafted.append(entry)
            if len(self._drafted) == 1:
                task = asyncio.get_running_loop().create_task(self._finish_drafted())
                self._finishing.add(task)
                task.add_done_callback(self._finishing.discard)
        else:
            entry.leave_unasked(str(reason or self.stopped or self.capped))
            self._drop(entry)

    async def _finish_drafted(self) -> None:
        """Finish all that were left with a draft by now."""
        entries, self._drafted = self._drafted, []
        await self._finish(entries)

    async def settle(self) -> None:
        """Wait until every record that was left has its end."""
        while self._finishing:
            await asyncio.wait(self._finishing)

    def leave_all(self) -> None:
        """`leave` every record that is still on its way."""
        for item in list(self._owners):
            self.leave(item)

    def _drop(self, entry: Entry) -> None:
        for item in entry.open:
            self._owners.pop(item, None)
        if self._entries.get(entry.key) is entry:
            del self._entries[entry.key]

    def _count(self, end: asyncio.Future[Result]) -> None:
        via = end.result().via
        setattr(self.progress, via, getattr(self.progress, via) + 1)
