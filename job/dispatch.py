"""Records in, results out: recall, then packs formed at the moment their permit arrives.

Invariant: every record that is submitted gets exactly one result, whatever the provider, the store
or the user do; every answer that is used is in the store before its record's result is handed on;
two records with equal keys are asked once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from job.contract import Fail, Keep, Split, Step, Stop, Together, Wait, after_error, after_reply
from job.entries import Entry
from job.pack import Fit, Item, Window, make_item
from job.parts import MAX_PARTS, split_text
from job.progress import BusyClock, Progress
from job.records import Lane, Record, Result
from job.requests import build_request, lane_of, wire_tokens
from job.stored import AskSettings, Store, Stored, decode, encode, record_key
from job.validate import validate
from serve.ask import tokens
from serve.ask.ask import Asker
from serve.ask.contract import Class
from serve.ask.errors import AskError
from serve.ask.limiter import Lease

LINGER_SECONDS = 0.5
"""A pack that is not full is formed only when no record has arrived for this long: then either
the input is at its end or it waits for these very answers."""
PATIENCE_SECONDS = 600.0
FIRST_PATIENCE_SECONDS = 120.0
"""A provider that answers nothing at all for so long ends the run early: after it has answered
before, or when it never has (a wrong port should not cost ten minutes)."""


def _events() -> dict[Lane, asyncio.Event]:
    return {"fast": asyncio.Event(), "slow": asyncio.Event()}


@dataclass(slots=True)
class Dispatcher:
    """Asks about records with as few calls as the contract allows. Lives on one event loop.

    `wanted` is asked before each call: False ends the asking, since nobody waits for the answers.
    """

    asker: Asker
    store: Store
    settings: AskSettings
    fit: Fit
    wanted: Callable[[], bool] = lambda: True
    progress: Progress = field(default_factory=Progress)
    stopped: AskError | str | None = None
    _window: Window = field(init=False)
    _batches: deque[Together] = field(default_factory=deque)
    _entries: dict[bytes, Entry] = field(default_factory=dict)
    _owners: dict[Item, Entry] = field(default_factory=dict)
    _arrived: float = 0.0
    _heard: float = field(default_factory=time.monotonic)
    _wake: dict[Lane, asyncio.Event] = field(default_factory=_events)
    _wake_again: asyncio.Event = field(default_factory=asyncio.Event)
    _busy: BusyClock = field(default_factory=BusyClock)

    def __post_init__(self) -> None:
        self._window = Window(self.fit)

    async def submit(self, records: Sequence[Record]) -> list[Result]:
        """The results of `records`, in their order, when each has one."""
        settings = self.settings
        keys = [record_key(record, settings) for record in records]
        known = {} if settings.fresh else await self.store.get_many(list(dict.fromkeys(keys)))
        entries: list[Entry] = []
        for record, key in zip(records, keys, strict=True):
            waiting = self._entries.get(key)
            if waiting is not None:
                entries.append(waiting.follower(record))
                continue
            entry = Entry(record, key, asyncio.get_running_loop().create_future())
            entries.append(entry)
            if key in known:
                entry.recall(decode(known[key]))
            elif self.stopped is not None:
                entry.leave_unasked(str(self.stopped))
            else:
                self._entries[key] = entry
                self._enqueue(entry)
        results = [await entry.future for entry in entries]
        for result in results:
            setattr(self.progress, result.via, getattr(self.progress, result.via) + 1)
        return results

    def stop(self, reason: AskError | str) -> None:
        """Ask nothing more. Calls in flight are waited for; all that waits stays unasked."""
        if self.stopped is None:
            self.stopped = reason
        items = self._window.drain()
        items += [item for batch in self._batches for item in batch.items]
        self._batches.clear()
        for item in items:
            self._leave(item)

    async def run(self) -> None:
        """Ask until cancelled. Whatever ends it, no record is left waiting."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._seek("fast", group))
                group.create_task(self._seek("slow", group))
                group.create_task(self._seek_again(group))
                group.create_task(self._watch())
        finally:
            self.stop("the asking was ended")
            for item in list(self._owners):
                self._leave(item)

    def _enqueue(self, entry: Entry) -> None:
        item = make_item(entry.record)
        if self._too_big(item):
            self._split(item, entry)
        else:
            self._own(item, entry)
            self._push(item)

    def _too_big(self, item: Item) -> bool:
        return item.line_tokens > self.fit.max_part(item.record.kind)

    def _own(self, item: Item, entry: Entry) -> None:
        entry.open.add(item)
        self._owners[item] = entry

    def _push(self, item: Item, last: bool = False) -> None:
        self._window.push(item, last)
        self._arrived = time.monotonic()
        self._wake[item.record.lane].set()

    def _split(self, item: Item, entry: Entry) -> None:
        """Replace `item` by parts of half its size, or of the biggest size that fits."""
        entry.open.discard(item)
        self._owners.pop(item, None)
        most = self.fit.max_part(item.record.kind)
        size = most if item.line_tokens > most else item.line_tokens // 2
        overhead = item.line_tokens - tokens.count(item.text)
        parts = split_text(item.text, size - overhead)
        if parts is None or entry.parts + len(parts) > MAX_PARTS:
            entry.fail("too_large", None, item.attempts)
            self._drop(entry)
            return
        self.progress.splits += 1
        first = entry.parts
        entry.parts += len(parts)
        for number, part in enumerate(parts):
            piece = make_item(item.record, part, first + number)
            piece.rounds = item.rounds
            self._own(piece, entry)
            self._push(piece)

    async def _seek(self, lane: Lane, group: asyncio.TaskGroup) -> None:
        """Form the packs of one lane, each at the moment its permit has come."""
        while True:
            lease = await self._acquire(lane, await self._pack_ready(lane))
            kind, _ = self._window.choose(lane)
            items = self._window.take(kind, lane) if kind is not None else []
            await self._start(Together(tuple(items)), lease, group)

    async def _seek_again(self, group: asyncio.TaskGroup) -> None:
        """Send the packs that the contract asks for again."""
        while True:
            while not self._batches:
                self._wake_again.clear()
                await self._wake_again.wait()
            lease = await self._acquire("retry", self._estimate(self._batches[0].items))
            batch = self._batches.popleft() if self._batches else Together(())
            await self._start(batch, lease, group)

    async def _acquire(self, cls: Class, tokens_wanted: int) -> Lease:
        with self._busy.running():
            return await self.asker.acquire(cls, tokens_wanted)

    async def _pack_ready(self, lane: Lane) -> int:
        """Wait until `lane` has a pack worth a permit; the tokens it will take, about."""
        while True:
            kind, full = self._window.choose(lane)
            rested = time.monotonic() - self._arrived
            if kind is not None and (full or rested >= LINGER_SECONDS):
                wire = self.fit.wire[lane] if full else self._window.tokens(kind, lane)
                return self.fit.estimate(kind, lane, wire, self._window.count(kind, lane))
            self._wake[lane].clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if kind is None else LINGER_SECONDS - rested):
                    await self._wake[lane].wait()

    async def _start(self, batch: Together, lease: Lease, group: asyncio.TaskGroup) -> None:
        """Send those of `batch` that still wait; without any the permit goes back."""
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
        request = build_request(items, self.settings.language, self.fit, repair)
        self.progress.packs += 1
        self.progress.packed_records += len(items)
        self.progress.in_flight += 1
        self.progress.peak_in_flight = max(self.progress.peak_in_flight, self.progress.in_flight)
        try:
            with self._busy.running():
                reply = await self.asker.ask(request, lease)
        except AskError as error:
            if error.status is not None and error.status < 500 and error.status != 429:
                self._heard = time.monotonic()
            steps = after_error(items, error, repair)
            model = self.settings.model
        else:
            self._heard = time.monotonic()
            self.progress.first = self.progress.first or time.time()
            self.progress.last = time.time()
            local = {str(number): item for number, item in enumerate(items, 1)}
            texts = {key: item.text for key, item in local.items()}
            verdict = validate(reply.text, reply.finish_reason, texts)
            kind = items[0].record.kind
            self.fit.observe_input(request.estimate_in, reply.usage.tokens_in)
            if verdict.whole:
                self.fit.observe_output(kind, reply.usage.tokens_out, verdict.weights)
            room = self.fit.room(kind, lane_of(items), wire_tokens(items))
            room_left = request.max_output < room
            steps = after_reply(local, verdict, repair, room_left)
            model = reply.model
        finally:
            self.progress.in_flight -= 1
        await self._do(steps, model)

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
                entry = self._owners.get(step.item)
                if entry is not None:
                    self._split(step.item, entry)
            elif isinstance(step, Wait):
                for item in step.items:
                    self._push(item, step.last)
            else:
                self._batches.append(step)
                self._wake_again.set()
        await self._finish(finished, model)

    async def _finish(self, entries: Sequence[Entry], model: str) -> None:
        stored = [(entry, Stored(entry.merged(), entry.review, model)) for entry in entries]
        if stored:
            rows = [(entry.key, encode(value)) for entry, value in stored]
            try:
                await self.store.put_many(rows, self.settings.fresh)
            except Exception as error:
                self.stop(f"the store of answers failed: {error}")
        for entry, value in stored:
            entry.answer(value)
            self._drop(entry)

    def _leave(self, item: Item) -> None:
        entry = self._owners.pop(item, None)
        if entry is not None:
            entry.leave_unasked(str(self.stopped))
            self._drop(entry)

    def _drop(self, entry: Entry) -> None:
        for item in entry.open:
            self._owners.pop(item, None)
        self._entries.pop(entry.key, None)

    def _estimate(self, items: Sequence[Item]) -> int:
        lane = lane_of(items)
        return self.fit.estimate(items[0].record.kind, lane, wire_tokens(items), len(items))

    async def _watch(self) -> None:
        """End the run when the provider has been silent for too long."""
        while True:
            await asyncio.sleep(1)
            self.refresh()
            if not self._owners:
                self._heard = time.monotonic()
            patience = PATIENCE_SECONDS if self.progress.first else FIRST_PATIENCE_SECONDS
            silent = time.monotonic() - self._heard
            if silent > patience and self.stopped is None:
                self.stop(f"{self.asker.provider.base_url} answered nothing for {silent:.0f} s")

    def refresh(self) -> None:
        """Bring the numbers in `progress` up to date."""
        self.progress.busy = self._busy.seconds
        self.progress.waiting_fast = self._window.waiting("fast")
        self.progress.waiting_slow = self._window.waiting("slow")
        self.progress.waiting_again = sum(len(batch.items) for batch in self._batches)
