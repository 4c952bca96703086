"""Records -> packs that fit, in two lanes. Pure.

Invariant: `Window` holds every item exactly once; an item leaves it in one pack; a pack holds one
kind, one lane and one tier, in time order, and fits the model's context with room for its answers.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Literal

import orjson

from job.estimates.call_seconds import CallSeconds
from job.estimates.reserve import Reserve
from job.records import Answer, Kind, Lane, Record
from serve.ask import tokens

Mode = Literal["packed", "single"]
Group = tuple[Kind, Lane, int]
"""Kind, lane and tier: a pack holds one of each."""

WIRE_TOKENS: dict[Lane, int] = {"fast": 5000, "slow": 4000}
"""Input tokens of a pack's records at most: beyond, answers get lost more often than calls are
saved (DESIGN 3)."""
MARGIN_TOKENS = 200
"""Left free in the context for what estimates miss."""
LOOK_PAST = 16
"""Items that do not fit which a pack looks past for one that does."""
ISO_DATE_TOKENS = 10
"""What a full time costs a record more than a time of day, in packs that span dates."""
BYTES_A_TOKEN = 3.0
"""Of JSON answers, for providers that send no `usage` (cl100k: 2.6 Chinese, 3.9 English)."""


@dataclass(slots=True, eq=False)
class Item:
    """A record, or one part of a record too big for a pack, that waits for its answer.

    `line_tokens`: of its line on the wire. The counters say what was tried: `rounds` that ended in
    a failing provider, `asked` times that an answer came back without it or unusable, `alone` of
    those by itself, at its tier. `part`: its place among the parts of its record. `tier`: the place
    of the model that is to answer it among those of the run. `draft` is a usable answer with
    required fields empty, from the model `drafted_by`. `took_in`, `took_out`: its share of the
    tokens of the replies that its tier gave about it. `rank`: where its record stands in a run that
    may not get round to all, None: not known yet.
    """

    record: Record
    text: str
    line_tokens: int
    part: tuple[int, ...] = ()
    rounds: int = 0
    asked: int = 0
    alone: int = 0
    tier: int = 0
    draft: Answer | None = None
    drafted_by: str = ""
    took_in: float = 0.0
    took_out: float = 0.0
    rank: int | None = None

    @property
    def attempts(self) -> int:
        """How often it was sent in vain."""
        return self.rounds + self.asked


def make_item(record: Record, text: str | None = None, part: tuple[int, ...] = ()) -> Item:
    """The item for `record`, or for a part of it that holds `text`."""
    text = record.text if text is None else text
    line = wire_line("10", record.time, text, False) + "\n"
    return Item(record, text, tokens.count(line), part)


def wire_line(local_id: str, time: datetime | None, text: str, dated: bool) -> str:
    """One line of the user message (DESIGN 4): `dated` packs span dates and need full times."""
    row: dict[str, str] = {"id": local_id}
    if time is not None:
        row["time"] = time.strftime("%Y-%m-%dT%H:%M:%SZ" if dated else "%H:%M:%S")
    row["text"] = text
    return orjson.dumps(row).decode()


@dataclass(slots=True)
class Fit:
    """What fits into one request. All in tokens; `ratio` is the provider's count of input tokens
    over ours, learned from its `usage`."""

    context: int
    max_output: int | None
    instructions: dict[tuple[Kind, Lane], int]
    wire: dict[Lane, int] = field(default_factory=lambda: dict(WIRE_TOKENS))
    part: int = WIRE_TOKENS["slow"]
    """Of the biggest part of a split record: it stays when packs find another size, so that a
    record is split alike in every run."""
    mode: Mode = "packed"
    reserve: Reserve = field(default_factory=Reserve)
    seconds: CallSeconds = field(default_factory=CallSeconds)
    ratio: float = 1.0
    overhead: int = 0
    """Input tokens beside instructions and records: of a schema that has to go in words."""

    def with_pack_tokens(self, tokens_a_pack: int) -> Fit:
        """The same for packs of another size; slow ones are four fifths of it, as by default."""
        fast, slow = WIRE_TOKENS["fast"], WIRE_TOKENS["slow"]
        wire: dict[Lane, int] = {"fast": tokens_a_pack, "slow": tokens_a_pack * slow // fast}
        return replace(self, wire=wire, part=wire["slow"])

    def observe_input(self, estimated: int, counted: int) -> None:
        """Learn the ratio from one reply: a slow mean, so that one odd reply moves it little."""
        if estimated > 0 and counted > 0:
            self.ratio += 0.1 * (counted / estimated - self.ratio)

    def fits(self, kind: Kind, lane: Lane, wire: int, n: int) -> bool:
        """Whether `n` records of `wire` tokens together make one pack."""
        if n > 1 and (self.mode == "single" or wire * self.ratio > self.wire[lane]):
            return False
        needed = self.reserve.needed(kind, lane, n)
        if self.max_output is not None and needed > self.max_output and n > 1:
            return False
        fixed = self.input_tokens(kind, lane, wire)
        return fixed + needed + MARGIN_TOKENS <= self.context

    def max_part(self, kind: Kind) -> int:
        """Wire tokens of the biggest part of a split record."""
        reserve = self.reserve.needed(kind, "slow", 1)
        room = (self.context - reserve - MARGIN_TOKENS) / self.ratio
        fixed = self.instructions[kind, "slow"] + self.overhead
        return int(min(self.part, room - fixed))

    def room(self, kind: Kind, lane: Lane, wire: int) -> int:
        """Output tokens that the context, and the provider's own limit, leave."""
        room = self.context - self.input_tokens(kind, lane, wire) - MARGIN_TOKENS
        return max(1, min(room, self.max_output or room))

    def max_answer(self, kind: Kind, lane: Lane, wire: int, n: int, tries: int = 0) -> int:
        """What to ask for as the longest answer: twice the reserve, doubled with every try, as far
        as there is room: a cut answer costs a second call, unused room costs nothing."""
        wanted = 2 * self.reserve.needed(kind, lane, n) + MARGIN_TOKENS
        return min(wanted << tries, self.room(kind, lane, wire))

    def input_tokens(self, kind: Kind, lane: Lane, wire: int) -> int:
        """Of a request whose records take `wire` tokens, as the provider will count them."""
        return math.ceil((self.instructions[kind, lane] + self.overhead + wire) * self.ratio)

    def request_tokens(self, kind: Kind, lane: Lane, wire: int, n: int) -> int:
        """Input tokens and the longest answer of a pack of `n` records of `wire` tokens: what a
        provider that limits tokens sets aside for it."""
        return self.input_tokens(kind, lane, wire) + self.max_answer(kind, lane, wire, n)

    def estimate(self, kind: Kind, lane: Lane, wire: int, n: int) -> int:
        """`request_tokens` of the next pack, where `n` records of `wire` tokens together wait."""
        mean = wire / n
        fitting = 1 if self.mode == "single" else max(1, min(n, int(self.wire[lane] / mean)))
        while fitting > 1 and not self.fits(kind, lane, int(mean * fitting), fitting):
            fitting -= 1
        return self.request_tokens(kind, lane, int(mean * fitting), fitting)

    def observe_output(
        self, kind: Kind, lane: Lane, tokens_out: int, weights: Mapping[str, int]
    ) -> None:
        """Learn from a whole reply of `tokens_out` (0: the provider does not say), shared out by
        the bytes of each answer in `weights`."""
        total = sum(weights.values())
        for weight in weights.values():
            share = tokens_out * weight / total if tokens_out else weight / BYTES_A_TOKEN
            self.reserve.observe(kind, lane, math.ceil(share))


def by_time(record: Record) -> float:
    """Where a record stands in time; without one behind all others."""
    return record.time.timestamp() if record.time else math.inf


def _by_time(item: Item) -> float:
    return by_time(item.record)


class Window:
    """The records that wait to be packed, per group, in time order, or in another `order`
    (the smallest first)."""

    def __init__(self, fit: Fit, order: Callable[[Item], float] | None = None) -> None:
        self._fit = fit
        self._order = order or _by_time
        self._queues: dict[Group, list[tuple[float, int, Item]]] = {}
        self._tokens: dict[Group, int] = {}
        self._pushed = 0

    def __len__(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    def push(self, item: Item, last: bool = False) -> None:
        """Let `item` wait: in its group in its order, or behind all others."""
        key = (item.record.kind, item.record.lane, item.tier)
        self._pushed += 1
        when = math.inf if last else self._order(item)
        heapq.heappush(self._queues.setdefault(key, []), (when, self._pushed, item))
        self._tokens[key] = self._tokens.get(key, 0) + item.line_tokens

    def waiting(self, lane: Lane) -> int:
        """Items that wait in `lane`."""
        return sum(len(queue) for (_, at, _), queue in self._queues.items() if at == lane)

    def count(self, group: Group) -> int:
        """Items of `group` that wait."""
        return len(self._queues.get(group, ()))

    def tokens(self, group: Group) -> int:
        """Their wire tokens together."""
        return self._tokens.get(group, 0)

    def choose(self, lane: Lane) -> tuple[Group | None, bool]:
        """The group to pack next and whether its pack will be full: of those that fill a pack the
        one that waits with the oldest record, else the oldest of all."""
        best: tuple[bool, float, int, Group] | None = None
        for group, queue in self._queues.items():
            kind, at, _ = group
            if at == lane and queue:
                full = not self._fit.fits(kind, lane, self._tokens[group], len(queue))
                rank = (not full, queue[0][0], queue[0][1], group)
                best = rank if best is None or rank < best else best
        return (None, False) if best is None else (best[3], not best[0])

    def take(self, group: Group) -> list[Item]:
        """The next pack of `group`; empty if none waits. The first item is taken even where what
        was learned since it came leaves no room for it: the provider decides."""
        kind, lane, _ = group
        queue = self._queues.get(group, [])
        pack: list[Item] = []
        dates: set[date] = set()
        passed: list[tuple[float, int, Item]] = []
        wire = 0
        while queue and len(passed) < LOOK_PAST:
            waiting = heapq.heappop(queue)
            item = waiting[2]
            n, when = len(pack) + 1, _date(item)
            full_times = ISO_DATE_TOKENS * n if len(dates | when) > 1 else 0
            if not pack or self._fit.fits(kind, lane, wire + item.line_tokens + full_times, n):
                pack.append(item)
                dates |= when
                wire += item.line_tokens
            else:
                passed.append(waiting)
        for waiting in passed:
            heapq.heappush(queue, waiting)
        self._tokens[group] = self._tokens.get(group, 0) - wire
        return pack

    def drain(self) -> list[Item]:
        """Every item that waits, taken out."""
        items = [item for queue in self._queues.values() for _, _, item in queue]
        self._queues.clear()
        self._tokens.clear()
        return items


def spans_dates(items: Sequence[Item]) -> bool:
    """Whether the known times of `items` fall on more than one UTC date."""
    return len(set().union(*map(_date, items))) > 1


def _date(item: Item) -> set[date]:
    """The UTC date of an item; empty where it has no time."""
    return {item.record.time.date()} if item.record.time else set()


def dates_of(items: Sequence[Item]) -> str:
    """The date of a pack, or `first to last`; "unknown" where no record has a time."""
    dates = sorted({item.record.time.date().isoformat() for item in items if item.record.time})
    if not dates:
        return "unknown"
    return dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
