"""The packs of a run as they will be formed: from the records that wait when a permit comes, with
what the answers before have taught. Pure but for the records, which are read as they are wanted.

Invariant: packs are formed by the classes that form them in a run, so that where every call goes
well and answers are as long as foreseen, these are the packs of that run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from job.analyse.parts import split_item
from job.analyse.requests import build_request, lane_of, pack_wire
from job.analyse.stored import AskSettings
from job.analyse.tiers import first_tier
from job.commands.preview_answers import AnswerTokens
from job.commands.preview_asking import Call
from job.pack import Fit, Item, Window, make_item
from job.pack_cost import Pack
from job.pack_size import PackSize
from job.records import Lane, Record
from serve.ask.contract import Class, Request

WINDOW_RECORDS = 4096
"""Records that wait to be packed at a time, as in a run."""
ENVELOPE_TOKENS = 4
"""What an answer holds beside its records."""
_LANES: dict[Class, Lane] = {"fast": "fast", "slow": "slow"}


@dataclass(slots=True)
class PlannedPacks:
    """The calls of a run (`preview_asking.Calls`). `records`: those to ask, in the order of
    reading; `size` finds the size of packs as it will in the run, None in single mode; `packs`
    counts calls by lane, `by_model` the tokens of each model; `first`: the request that is sent
    first."""

    records: Iterator[Record]
    ask: AskSettings
    fit: Fit
    answers: AnswerTokens
    size: PackSize | None = None
    packs: Counter[Lane] = field(default_factory=Counter)
    by_model: Counter[str] = field(default_factory=Counter)
    first: Request | None = None
    _window: Window = field(init=False)
    _read: bool = False
    _tokens: dict[Item, float] = field(default_factory=dict)
    _flying: dict[Call, list[Item]] = field(default_factory=dict)
    _lost: float = 0.0

    def __post_init__(self) -> None:
        self._window = Window(self.fit)

    def reserve(self, cls: Class) -> int | None:
        """See `Calls`. A pack that is not full is worth a permit once everything was read."""
        self._fill()
        lane = _LANES.get(cls)
        if lane is None:
            return None
        group, full = self._window.choose(lane)
        if group is None or not (full or self._read):
            return None
        wire, count = self._window.tokens(group), self._window.count(group)
        return self.fit.estimate(group[0], lane, wire, count)

    def take(self, cls: Class) -> Call:
        """See `Calls`."""
        lane = _LANES[cls]
        group, _ = self._window.choose(lane)
        if group is None:
            raise RuntimeError(f"a permit came for the {lane} lane, in which nothing waits")
        items = self._window.take(group)
        if self.first is None:
            self.first = build_request(items, self.ask, self.fit, repair=False)
        self.packs[lane] += 1
        kind, wire = group[0], pack_wire(items)
        tokens_in = self.fit.input_tokens(kind, lane, wire)
        tokens_out = ENVELOPE_TOKENS + sum(self._tokens[item] for item in items)
        self.by_model[self.ask.models[group[2]]] += tokens_in + math.ceil(tokens_out)
        seconds = self.fit.seconds.expected(kind, lane, tokens_in + tokens_out)
        reserved = self.fit.request_tokens(kind, lane, wire, len(items))
        call = Call(cls, reserved, tokens_in, tokens_out, seconds)
        self._flying[call] = items
        return call

    def ended(self, call: Call) -> None:
        """See `Calls`: the reserve and the size of packs learn from the answers, as in the run."""
        items = self._flying.pop(call)
        self._size_up(call, items)
        for item in items:
            self.fit.reserve.observe(
                item.record.kind, lane_of([item]), math.ceil(self._tokens.pop(item))
            )

    def _size_up(self, call: Call, items: Sequence[Item]) -> None:
        """Let a pack come back with as many rows lost as earlier runs let expect."""
        if self.size is None:
            return
        wire = pack_wire(items) * self.fit.ratio
        self._lost += len(items) * self.size.expected(wire)
        again, self._lost = divmod(self._lost, 1)
        self.size.observe(
            Pack(
                wire,
                len(items),
                int(again),
                round(call.tokens_in),
                round(call.tokens_out),
                call.seconds,
            )
        )
        self.fit.wire = self.size.wire

    def _fill(self) -> None:
        while not self._read and len(self._window) < WINDOW_RECORDS:
            record = next(self.records, None)
            if record is None:
                self._read = True
            else:
                self._push(record)

    def _push(self, record: Record) -> None:
        """Let a record wait, in parts where it is too big for a pack; one of too many parts is not
        asked."""
        item, tokens = make_item(record), self.answers.of(record)
        item.tier, _ = first_tier(record.text, self.ask.models)
        whole = item.line_tokens <= self.fit.max_part(record.kind)
        for each in [item] if whole else split_item(item, self.fit) or []:
            self._tokens[each] = tokens
            self._window.push(each)
