"""Records in, results out: recall, then packs formed at the moment their permit arrives.

Invariant: every record that is submitted gets exactly one result, whatever the provider, the store
or the user do; nothing is sent once the asking was stopped.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from job.analyse.contract import Fail, Sent, Step, Together, after_error, after_reply
from job.analyse.learning import Learning
from job.analyse.outcomes import Outcomes
from job.analyse.patience import reason_to_give_up
from job.analyse.requests import SCHEMA_TOKENS, build_request, lane_of, wire_tokens
from job.analyse.routing import Routing
from job.analyse.stored import AskSettings, Store
from job.analyse.waiting import LINGER_SECONDS, Waiting
from job.pack.packing import Fit, Item
from job.progress import BusyClock, Progress
from job.ration.deadline import REACHED, TimeLeft
from job.records import Record, Result
from job.validate import Verdict, validate
from serve.ask.ask import Asker
from serve.ask.contract import Class, Reply, Request
from serve.ask.errors import AskError, Misconfigured, Refused, Stopped
from serve.ask.limiter import Lease
from serve.ask.price_table import prices_of

REFUSED_ALIKE = 8
"""Records refused alone in the same words, before anything was ever answered, that show a refusal
to be about the request as such and not about what a record says."""


@dataclass(slots=True)
class Dispatcher:
    """Asks about records with as few calls as the contract allows. Lives on one event loop.

    `wanted` is asked before each call: False ends the asking, since nobody waits for the answers.
    `linger`: see `waiting.py`. `witness` sees what each reply to a pack is worth, its items in the
    order in which they were sent. `rationed`: the most important records are asked first, since
    there may be no time or money for all; `time_left`: until when.
    """

    asker: Asker
    store: Store
    settings: AskSettings
    fit: Fit
    wanted: Callable[[], bool] = lambda: True
    linger: float = LINGER_SECONDS
    witness: Callable[[Sequence[Item], Verdict], None] = lambda items, verdict: None
    rationed: bool = False
    time_left: TimeLeft = field(default_factory=TimeLeft)
    progress: Progress = field(default_factory=Progress)
    learning: Learning = field(init=False)
    _waiting: Waiting = field(init=False)
    _routing: Routing = field(init=False)
    _outcomes: Outcomes = field(init=False)
    _refused: Counter[str] = field(default_factory=Counter)
    _busy: BusyClock = field(default_factory=BusyClock)

    def __post_init__(self) -> None:
        self._waiting = Waiting(self.fit, self.linger, self.rationed)
        self.learning = Learning(self.fit)
        known = [prices_of(self.asker.provider, model) for model in self.settings.models]
        prices = tuple(each.prices if each else None for each in known)
        self._routing = Routing(self.settings.models, prices)
        self._outcomes = Outcomes(
            self.store,
            self.settings,
            self.fit,
            self._waiting,
            self._routing,
            self.progress,
            self.asker.stop,
        )

    @property
    def stopped(self) -> AskError | str | None:
        """Why nothing more is asked; None while it is."""
        return self._outcomes.stopped

    @property
    def idle(self) -> bool:
        """Whether no record is on its way."""
        return self._outcomes.idle

    async def submit(
        self, records: Sequence[Record], ranks: Sequence[int] | None = None
    ) -> list[Result]:
        """The results of `records`, in their order, when each has one. `ranks`: where each stands
        in the order of importance, as far as that is known."""
        ends, fresh = self._outcomes.admit(records, ranks)
        await self._outcomes.recall(fresh)
        return [await end for end in ends]

    def stop(self, reason: AskError | str) -> None:
        """Ask nothing more. Calls on the wire are waited for, one timeout at most; all that waits
        stays unasked."""
        self._outcomes.stop(reason)

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
            self._outcomes.leave_all()
            await self._outcomes.settle()

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
            if self.time_left.over(time.time()):
                self.stop(REACHED)
            if self.stopped is not None or self._routing.is_closed(batch.items):
                for item in batch.items:
                    self._outcomes.leave(item)
            elif batch.items and not self._in_time(cls, batch.items):
                # A shorter call, one of the other lane perhaps, may still end in time.
                self.progress.late += 1
                for item in batch.items:
                    self._outcomes.leave(item, REACHED)
            items = [item for item in batch.items if self._outcomes.owns(item)]
            if items:
                group.create_task(self._send(items, batch.repair, lease))
            else:
                await self.asker.give_back(lease)

    def _in_time(self, cls: Class, items: Sequence[Item]) -> bool:
        """Whether a call about `items` that is begun now is expected to end in time."""
        kind, lane = items[0].record.kind, lane_of(items)
        tokens = self.fit.request_tokens(kind, lane, wire_tokens(items), len(items))
        guess = self.fit.seconds.expected(kind, lane, tokens)
        return self.time_left.allows(cls, guess, time.time())

    async def _send(self, items: Sequence[Item], repair: bool, lease: Lease) -> None:
        """Ask about `items` and do what the outcome demands."""
        model = self._routing.model_of(items)
        schema = self.asker.capabilities_of(model).json == "schema"
        self.fit.overhead = 0 if schema else SCHEMA_TOKENS
        request = build_request(items, self.settings, self.fit, repair)
        sent = Sent(repair, higher=self._routing.can_escalate(items))
        self.progress.begin(len(items))
        began = time.monotonic()
        try:
            with self._busy.running():
                async with asyncio.timeout(self.time_left.seconds(time.time())):
                    reply = await self.asker.ask(request, lease)
        except TimeoutError:
            steps = after_error(items, Stopped(REACHED), sent)
        except AskError as error:
            steps = after_error(items, error, sent)
            self.learning.gave_up(items, request, error)
            if error.usage is not None:
                self._routing.replied(items, error.usage)
            self._note_refusal(steps, error)
        else:
            self.time_left.observe(lease.cls, time.monotonic() - began)
            steps = self._judge(items, request, reply, sent)
            model = reply.model
        finally:
            self.progress.in_flight -= 1
        await self._outcomes.do(steps, model)

    def _judge(
        self, items: Sequence[Item], request: Request, reply: Reply, sent: Sent
    ) -> list[Step]:
        """What the reply is worth; what it teaches is learned."""
        self.progress.first = self.progress.first or time.time()
        self.progress.last = time.time()
        local = {str(number): item for number, item in enumerate(items, 1)}
        texts = {key: item.text for key, item in local.items()}
        verdict = validate(reply.text, reply.finish_reason, texts)
        self.learning.observe(items, request, reply, verdict)
        self.witness(items, verdict)
        self._routing.replied(items, reply.usage)
        room = self.fit.room(items[0].record.kind, lane_of(items), wire_tokens(items))
        model = request.model or self.asker.model
        limited = self.asker.capabilities_of(model).output_limit != "none"
        room_left = limited and request.max_output < room
        return after_reply(local, verdict, replace(sent, room_left=room_left, model=reply.model))

    def _note_refusal(self, steps: Sequence[Step], error: AskError) -> None:
        """Stop where it is not a record that is refused but everything."""
        failed = any(isinstance(step, Fail) for step in steps)
        if self.progress.first is None and failed and isinstance(error, Refused):
            self._refused[error.message] += 1
            if self._refused[error.message] >= REFUSED_ALIKE:
                alike = f"every request is refused alike: {error.message}"
                self.stop(Misconfigured(alike, error.status))

    async def _watch(self) -> None:
        """End the run when the provider has been silent for too long, or at its deadline."""
        while True:
            await asyncio.sleep(1)
            self.learning.heed(await self.asker.permits.stats())
            if self._outcomes.idle:
                self.asker.heard = max(self.asker.heard, time.monotonic())
            elif self.time_left.over(time.time()):
                self.stop(REACHED)
            reason = reason_to_give_up(
                self.asker, self.progress.first is not None, time.monotonic()
            )
            if reason is not None and self.stopped is None:
                self.stop(reason)

    def facts(self) -> dict[str, Any]:
        """What was learned so far, for `timing.json`."""
        routing = {"routing": found} if (found := self._routing.facts()) else {}
        size = self.learning.size
        packs = {} if size is None else {"packs": size.facts()}
        return {"estimates": self.learning.facts(), **packs, **routing}

    def refresh(self) -> None:
        """Bring the numbers in `progress` up to date."""
        self.progress.busy = self._busy.seconds
        self.progress.wait(*self._waiting.counts())
