"""What calls cost and may cost: exact money under a cap. Pure: values and a clock in, decisions
out.

Whoever hosts a Budget calls `step` after every other call and at the time `step` asks for; nothing
is granted outside `step`.

Invariant: what was spent and what the calls in flight may cost at worst are together at most the
cap, so that whatever their answers cost the bill is too. An attempt is counted once: reserved until
it is settled, then by its cost, by nothing where it was surely not billed, or in full where nobody
can tell.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from typing import Literal

from serve.ask.contract import Usage
from serve.ask.settings import Prices

MILLION = 1_000_000
SAFETY = Decimal(2)
"""Times our own count of a request's input tokens: its worst, until the provider counted ENOUGH."""
ENOUGH = 20
"""Replies of a model to requests of one kind, from which on its ratios say what to expect."""
LEEWAY = Decimal("1.1")
"""Times the largest ratio of its count to ours that was seen, or 1 where that is larger: the worst
from then on."""
SLACK_SECONDS = 30.0
"""What a caller may take beyond its timeout to settle, before it counts as gone."""

Ended = Literal["answered", "free", "unconfirmed"]
"""How an attempt ended: with the provider's count of its tokens; without it and surely not billed;
without it, and it may have been billed."""


def cost_of(usage: Usage, prices: Prices) -> Decimal:
    """What so many tokens cost, exactly."""
    cached = min(usage.cached, usage.tokens_in)
    cached_price = prices.input if prices.cached is None else prices.cached
    fresh = usage.tokens_in - cached
    total = fresh * prices.input + cached * cached_price + usage.tokens_out * prices.output
    return total / MILLION


def expected_cost(tokens_in: float, tokens_out: float, prices: Prices) -> Decimal:
    """What about so many tokens will cost if none of them is cached: nobody knows beforehand."""
    usage = Usage(math.ceil(tokens_in), math.ceil(tokens_out))
    return cost_of(usage, prices)


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt as its cost is reckoned. `estimate_in`: input tokens by our own count;
    `max_output`: the longest answer it asks for, in tokens; `seconds`: its timeout. `billed_to`,
    `optional`: see `Request`."""

    model: str
    estimate_in: int
    max_output: int
    seconds: float
    billed_to: Mapping[tuple[str, str], float] = field(default_factory=dict)
    optional: bool = False


@dataclass(slots=True)
class Ratios:
    """The provider's count of input tokens over ours: `largest` of each model, and the number of
    `replies` by model and kinds of what was asked. Text of another kind may have another ratio, and
    so may the next of the same: the worst is never below our own count."""

    largest: dict[str, Decimal] = field(default_factory=dict)
    replies: Counter[tuple[str, frozenset[str]]] = field(default_factory=Counter)

    def observe(self, call: Call, counted: int) -> None:
        """Learn from one reply."""
        if call.estimate_in > 0 and counted > 0:
            ratio = Decimal(counted) / call.estimate_in
            self.largest[call.model] = max(ratio, self.largest.get(call.model, ratio))
            self.replies[call.model, _kinds(call)] += 1

    def worst_input(self, call: Call) -> int:
        """Input tokens that the provider may count."""
        factor = max(Decimal(1), self.largest.get(call.model, Decimal(1))) * LEEWAY
        if self.replies[call.model, _kinds(call)] < ENOUGH:
            factor = max(factor, SAFETY)
        return int((call.estimate_in * factor).to_integral_value(ROUND_CEILING))


def _kinds(call: Call) -> frozenset[str]:
    return frozenset(what for what, _ in call.billed_to)


def worst_cost(call: Call, prices: Prices, ratios: Ratios) -> Decimal:
    """The most that `call` may cost."""
    # A configuration may make cached input the dearer one.
    dearest = prices.model_copy(update={"input": max(prices.input, prices.cached or 0)})
    return cost_of(Usage(ratios.worst_input(call), call.max_output), dearest)


@dataclass(frozen=True, slots=True)
class Step:
    """What is decided now. `granted`: the reserved amount of each attempt that may be sent, None
    where the model's prices are not known. `refused`: those that no longer fit under the cap.
    `wake_at`: when to step again, infinity: after the next call."""

    granted: Mapping[str, Decimal | None] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    wake_at: float = math.inf


@dataclass(slots=True)
class _Open:
    """An attempt that may be on the wire. `until`: when its caller counts as gone."""

    call: Call
    amount: Decimal
    until: float


class Budget:
    """Attempts of one run in the order in which they came, by ticket. Times are seconds.

    `cap` None: no limit. `closed`: models of which a call did not fit any more; none of theirs is
    granted, so that the asking ends, while those of a cheaper one may still be.
    """

    def __init__(
        self,
        cap: Decimal | None,
        prices: Mapping[str, Prices],
        ratios: Ratios | None = None,
        spent: Decimal = Decimal(0),
        closed: Iterable[str] = (),
    ) -> None:
        """`prices` by model; of a model without one nothing is granted under a cap. `spent`: by
        attempts that are over."""
        self.cap = cap
        self.closed = set(closed)
        self._prices = prices
        self._ratios = ratios or Ratios()
        self._spent = spent
        self._open: dict[str, _Open] = {}
        self._gone: dict[str, _Open] = {}
        self._waiting: OrderedDict[str, Call] = OrderedDict()

    @property
    def spent(self) -> Decimal:
        """By attempts that are over, in full where they are unconfirmed."""
        return self._spent + _sum(self._gone)

    @property
    def reserved(self) -> Decimal:
        """What the attempts in flight may cost at worst."""
        return _sum(self._open)

    def worst(self, call: Call) -> Decimal | None:
        """The most that `call` may cost; None where its model's prices are not known."""
        prices = self._prices.get(call.model)
        return None if prices is None else worst_cost(call, prices, self._ratios)

    def holds(self, ticket: str) -> bool:
        """Whether the attempt has its reservation."""
        return ticket in self._open or ticket in self._gone

    def enqueue(self, ticket: str, call: Call) -> None:
        """An attempt waits for its reservation; a ticket that has one keeps it."""
        if not self.holds(ticket):
            self._waiting[ticket] = call

    def reopen(self, ticket: str, call: Call, amount: Decimal, now: float) -> None:
        """An attempt has the reservation it was given by a budget that is gone."""
        self._open[ticket] = _Open(call, amount, self._until(call, now))

    def withdraw(self, ticket: str) -> None:
        """The attempt does not wait any more."""
        self._waiting.pop(ticket, None)

    def settle(self, ticket: str, ended: Ended, usage: Usage | None = None) -> Decimal | None:
        """The attempt is over; what it counts for, None for one that has no reservation (settled
        before, or never granted) or whose model's prices are not known."""
        held = self._open.pop(ticket, None) or self._gone.pop(ticket, None)
        if held is None:
            return None
        if ended == "answered" and usage is not None:
            self._ratios.observe(held.call, usage.tokens_in)
        prices = self._prices.get(held.call.model)
        if prices is None:
            return None
        counts = held.amount
        if ended == "free":
            counts = Decimal(0)
        elif ended == "answered" and usage is not None:
            counts = cost_of(usage, prices)
        self._spent += counts
        return counts

    def step(self, now: float) -> Step:
        """Grant what fits, in order; refuse what no settling of calls in flight can make fit."""
        for ticket in [ticket for ticket, held in self._open.items() if held.until <= now]:
            self._gone[ticket] = self._open.pop(ticket)
        granted: dict[str, Decimal | None] = {}
        refused: list[str] = []
        while self._waiting:
            ticket, call = next(iter(self._waiting.items()))
            amount = self.worst(call)
            closed = call.model in self.closed
            if not closed and self._fits(amount, self.spent + self.reserved):
                self._open[ticket] = _Open(call, amount or Decimal(0), self._until(call, now))
                granted[ticket] = amount
            elif closed or not self._fits(amount, self.spent):
                if not call.optional:
                    self.closed.add(call.model)
                refused.append(ticket)
            else:
                break
            del self._waiting[ticket]
        wake_at = math.inf
        if self._waiting:
            wake_at = min(held.until for held in self._open.values())
        return Step(granted, tuple(refused), wake_at)

    def _fits(self, amount: Decimal | None, beside: Decimal) -> bool:
        return self.cap is None or (amount is not None and beside + amount <= self.cap)

    @staticmethod
    def _until(call: Call, now: float) -> float:
        return now + call.seconds + SLACK_SECONDS


def _sum(held: Mapping[str, _Open]) -> Decimal:
    return sum((one.amount for one in held.values()), Decimal(0))


def split_exactly(
    amount: Decimal, weights: Mapping[tuple[str, str], float], unit: Decimal
) -> dict[tuple[str, str], Decimal]:
    """`amount`, a multiple of `unit`, shared out by `weights` in multiples of `unit` whose sum is
    `amount`: what rounding leaves goes to those that lost most by it."""
    total = math.fsum(weights.values())
    if not total > 0:
        weights, total = dict.fromkeys(weights, 1.0), float(len(weights))
    units = int(amount / unit)
    exact = {whom: units * (Decimal(weight) / Decimal(total)) for whom, weight in weights.items()}
    shares = {whom: int(share) for whom, share in exact.items()}
    left = units - sum(shares.values())
    # A sum of floats can be smaller than its parts say, by far less than one unit each.
    order = sorted(exact, key=lambda whom: (shares[whom] - exact[whom], whom))
    for whom in order[:left] if left >= 0 else order[left:]:
        shares[whom] += 1 if left >= 0 else -1
    return {whom: share * unit for whom, share in shares.items()}


def round_exactly(amounts: Mapping[str, Decimal], unit: Decimal) -> dict[str, Decimal]:
    """`amounts` in multiples of `unit` whose sum is that of `amounts`, rounded up to `unit`."""
    total = sum(amounts.values(), Decimal(0))
    units = int((total / unit).to_integral_value(ROUND_CEILING))
    shares = {name: int(amount / unit) for name, amount in amounts.items()}
    left = units - sum(shares.values())
    order = sorted(amounts, key=lambda name: (shares[name] - amounts[name] / unit, name))
    for name in order[:left]:
        shares[name] += 1
    return {name: share * unit for name, share in shares.items()}
