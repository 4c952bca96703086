"""The packs of a run as they will be formed: from the records that wait when a permit comes, with
what the answers before have taught. Pure but for the records, which are read as they are wanted.

Invariant: packs are formed by the classes that form them in a run, so that where every call goes
well and answers are as long as foreseen, these are the packs of that run.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from job.analyse.parts import split_item
from job.analyse.requests import build_request, lane_of, pack_wire
from job.analyse.stored import AskSettings
from job.analyse.tiers import first_tier
from job.commands.preview_answers import AnswerTokens
from job.commands.preview_asking import Call
from job.pack.cost import Pack
from job.pack.held import BLOCK_RECORDS, LEAST_BLOCKS
from job.pack.packing import Fit, Item, Window, make_item
from job.pack.size import PackSize
from job.records import Lane, Record
from serve.ask.contract import Class, Request

ENVELOPE_TOKENS = 4
"""What an answer holds beside its records."""
_ROUNDING = 1e-6
"""Sums of parts of tokens differ by less."""
_LANES: dict[Class, Lane] = {"fast": "fast", "slow": "slow"}


@dataclass(slots=True)
class PlannedPacks:
    """The calls of a run (`preview_asking.Calls`). `records`: those to ask, in the order of
    reading; `size` finds the size of packs as it will in the run, None in single mode; `packs`
    counts calls by lane; `first`: the request that is sent first; `held`: records that wait to be
    packed at a time, as in a run."""

    records: Iterator[Record]
    ask: AskSettings
    fit: Fit
    answers: AnswerTokens
    size: PackSize | None = None
    packs: Counter[Lane] = field(default_factory=Counter)
    first: Request | None = None
    held: int = LEAST_BLOCKS * BLOCK_RECORDS
    _window: Window = field(init=False)
    _read: bool = False
    _tokens: dict[Item, float] = field(default_factory=dict)
    _flying: dict[Call, list[Item]] = field(default_factory=dict)
    _again: deque[list[Item]] = field(default_factory=deque)
    _lost: float = 0.0

    def __post_init__(self) -> None:
        self._window = Window(self.fit)

    def reserve(self, cls: Class) -> int | None:
        """See `Calls`. A pack that is not full is worth a permit once everything was read, or
        where all that is held fills no pack of any lane: nothing more comes then before it is
        answered."""
        if cls == "retry":
            return self._reserve_again()
        self._fill()
        lane = _LANES[cls]
        group, full = self._window.choose(lane)
        if group is None or not (full or self._read or self._none_full()):
            return None
        wire, count = self._window.tokens(group), self._window.count(group)
        return self.fit.estimate(group[0], lane, wire, count)

    def take(self, cls: Class) -> Call:
        """See `Calls`."""
        items = self._again.popleft() if cls == "retry" else self._take(_LANES[cls])
        if self.first is None:
            self.first = build_request(items, self.ask, self.fit, repair=False)
        kind, lane, wire = items[0].record.kind, lane_of(items), pack_wire(items)
        self.packs[lane] += 1
        tokens_in = self.fit.input_tokens(kind, lane, wire)
        longest = self.fit.max_answer(kind, lane, wire, len(items))
        answers = ENVELOPE_TOKENS + sum(self._tokens[item] for item in items)
        tokens_out = min(answers, longest) if len(items) > 1 else answers
        seconds = self.fit.seconds.expected(kind, lane, tokens_in + tokens_out)
        reserved = self.fit.request_tokens(kind, lane, wire, len(items))
        model = self.ask.models[items[0].tier]
        call = Call(cls, reserved, tokens_in, tokens_out, seconds, model)
        self._flying[call] = items
        return call

    def ended(self, call: Call) -> None:
        """See `Calls`: the reserve and the size of packs learn from the answers, as in the run. Of
        an answer that would be longer than there is room for, the rest is asked in halves."""
        items = self._flying.pop(call)
        whole = self._whole(items, call.tokens_out)
        rest = items[whole:]
        if call.cls != "retry":
            self._size_up(call, items, len(rest))
        for item in items[:whole]:
            tokens = math.ceil(self._tokens.pop(item))
            if not rest:
                self.fit.reserve.observe(item.record.kind, lane_of([item]), tokens)
        middle = (len(rest) + 1) // 2
        self._again.extend(half for half in (rest[:middle], rest[middle:]) if half)

    def _whole(self, items: Sequence[Item], tokens_out: float) -> int:
        """How many of the answers are whole in a reply of so many tokens."""
        if len(items) == 1:
            return 1
        ends = accumulate((self._tokens[item] for item in items), initial=ENVELOPE_TOKENS)
        return sum(end <= tokens_out + _ROUNDING for end in ends) - 1

    def _take(self, lane: Lane) -> list[Item]:
        group, _ = self._window.choose(lane)
        if group is None:
            raise RuntimeError(f"a permit came for the {lane} lane, in which nothing waits")
        return self._window.take(group)

    def _none_full(self) -> bool:
        return not any(self._window.choose(lane)[1] for lane in _LANES.values())

    def _reserve_again(self) -> int | None:
        if not self._again:
            return None
        items = self._again[0]
        kind, lane = items[0].record.kind, lane_of(items)
        return self.fit.request_tokens(kind, lane, pack_wire(items), len(items))

    def _size_up(self, call: Call, items: Sequence[Item], cut: int) -> None:
        """Let a pack come back with as many rows lost as earlier runs let expect, or with `cut` of
        them cut off."""
        if self.size is None:
            return
        wire = pack_wire(items) * self.fit.ratio
        self._lost += len(items) * self.size.expected(wire)
        again, self._lost = divmod(self._lost, 1)
        self.size.observe(
            Pack(
                wire,
                len(items),
                cut or int(again),
                round(call.tokens_in),
                round(call.tokens_out),
                call.seconds,
                whole=not cut,
            )
        )
        self.fit.wire = self.size.wire

    def _fill(self) -> None:
        while not self._read and len(self._window) < self.held:
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
