"""What a good answer costs in packs of a given size: the slowest of three limits. Pure.

Invariant: values in, seconds per record out; what was not seen yet is taken from packs of other
sizes, never made up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from job.pack.evidence import counts
from job.pack.held import records_held
from job.pack.packing import MARGIN_TOKENS, WIRE_TOKENS
from serve.ask.permit import LimiterStats
from serve.ask.settings import Provider

Limit = Literal["requests", "tokens", "latency"]
"""What a run waits for: requests a minute, tokens a minute, or the calls in flight."""

Bound = Literal["context", "minute", "window"]
"""What holds no bigger pack with its answer: the model's context and longest answer, all the tokens
that the provider allows in a minute, or the records that are held at once (`held.py`)."""

CALLS_KEPT = 200
"""Calls that count at most, for all means."""
START_TOKENS = 700
"""A call takes as long as if its records had so many tokens more: 1.2 s at 1,000 tokens, 6.2 s at
8,000 (the measured curve of the article's provider)."""
TRUST_CALLS = 20
"""Calls of one size that weigh as much as what the others say of it."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What the provider allows now. `rpm`, `tpm`: requests and tokens a minute, None: no limit
    known; `concurrency`: calls in flight; `context`, `max_output`: tokens of a call and of its
    answer; `held`: records that are held at once, None: any number."""

    rpm: float | None
    tpm: float | None
    concurrency: int
    context: int
    max_output: int | None = None
    held: int | None = None

    @classmethod
    def of(cls, provider: Provider) -> Rates:
        """As the settings of `provider` say."""
        limits = provider.limits
        rpm, tpm = (each and each * limits.share for each in (limits.rpm, limits.tpm))
        held = records_held(provider)
        return cls(rpm, tpm, limits.max_concurrency, provider.context, provider.max_output, held)

    def found(self, stats: LimiterStats) -> Rates:
        """As the limiter has found since."""
        rpm, tpm = stats.rpm or self.rpm, stats.tpm or self.tpm
        return replace(self, rpm=rpm, tpm=tpm, concurrency=stats.concurrency)


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack that came back. `wire`: tokens of its records as the provider counts them; `again`:
    rows that have to be asked again; `whole`: there was a reply, neither cut nor broken; `seconds`:
    of the call."""

    wire: float
    rows: int
    again: int
    tokens_in: int
    tokens_out: int
    seconds: float
    whole: bool = True


@dataclass(slots=True)
class Tally:
    """What is shown of a size: plain counts of this run."""

    calls: int = 0
    rows: int = 0
    again: int = 0
    cut: int = 0
    seconds: float = 0.0

    def add(self, pack: Pack) -> None:
        """One more came back."""
        self.calls += 1
        self.rows += pack.rows
        self.again += pack.again
        self.cut += not pack.whole
        self.seconds += pack.seconds


@dataclass(slots=True)
class Means:
    """Sums over the packs seen, from which the means come."""

    calls: float = 0.0
    rows: float = 0.0
    wire: float = 0.0
    tokens_in: float = 0.0
    tokens_out: float = 0.0
    seconds: float = 0.0

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Means:
        """As they were kept (`asdict`). Raises ValueError for what are no means."""
        means = cls(**counts(kept))
        if means.calls and not min(means.rows, means.wire, means.tokens_out):
            raise ValueError("calls without records or answers")
        return means

    def add(self, pack: Pack) -> None:
        """One more."""
        self.calls += 1
        self.rows += pack.rows
        self.wire += pack.wire
        self.tokens_in += pack.tokens_in
        self.tokens_out += pack.tokens_out
        self.seconds += pack.seconds
        if self.calls > CALLS_KEPT:
            part = CALLS_KEPT / self.calls
            for name in self.__slots__:
                setattr(self, name, getattr(self, name) * part)


@dataclass(slots=True)
class Cost:
    """Seconds a good record takes, by size."""

    all: Means = field(default_factory=Means)
    by_size: dict[int, Means] = field(default_factory=dict)
    """By step of the grid (`size.py`)."""

    def add(self, step: int, pack: Pack) -> None:
        """Learn from one pack."""
        self.all.add(pack)
        self.by_size.setdefault(step, Means()).add(pack)

    def most(self, rates: Rates) -> tuple[Bound, float]:
        """Wire tokens of the biggest pack that the limits hold with its answer, and which of them
        it is."""
        means = self.all
        answer = means.tokens_out / means.wire if means.wire else 0.0
        instructions = (means.tokens_in - means.wire) / means.calls if means.calls else 0.0
        besides = instructions + MARGIN_TOKENS
        held: dict[Bound, float] = {"context": (rates.context - besides) / (1 + answer)}
        if rates.max_output is not None and answer > 0:
            held["context"] = min(held["context"], rates.max_output / answer)
        if rates.tpm is not None:
            held["minute"] = (rates.tpm - besides) / (1 + answer)
        if rates.held is not None and means.rows:
            rows = rates.held / (2 * self._in_flight(rates))
            held["window"] = max(rows * means.wire / means.rows, WIRE_TOKENS["fast"])
        return min(held.items(), key=lambda item: item[1])

    def _in_flight(self, rates: Rates) -> float:
        """Calls at once at most: as many as are begun while one is answered, or as are allowed."""
        if not rates.rpm:
            return max(1, rates.concurrency)
        begun = rates.rpm / 60 * self.all.seconds / self.all.calls
        return max(1.0, min(rates.concurrency, begun))

    def seconds(self, step: int, wire: float) -> float:
        """Seconds of a call for a pack of `wire` tokens, which is `step` of the grid."""
        means = self.all
        weight = START_TOKENS + wire
        shape = START_TOKENS * means.calls + means.wire
        expected = weight * means.seconds / shape if shape else 0.0
        own = self.by_size.get(step, Means())
        if not own.calls:
            return expected
        measured = own.seconds * weight / (START_TOKENS * own.calls + own.wire)
        return (measured * own.calls + expected * TRUST_CALLS) / (own.calls + TRUST_CALLS)

    def by_limit(self, step: int, wire: float, again: float, rates: Rates) -> dict[Limit, float]:
        """Seconds per good record under each limit, for packs of `wire` tokens of whose rows the
        share `again` has to be asked again.

        Those go into other packs, and who is lost there too is asked alone (DESIGN 4), so that a
        record takes 1 / rows / (1 - again) + again² calls.
        """
        means = self.all
        rows = max(1.0, wire * means.rows / means.wire)
        again = min(again, 0.9)
        alone = again * again
        calls = 1 / rows / (1 - again) + alone
        instructions = (means.tokens_in - means.wire) / means.calls
        record = (means.wire + means.tokens_out) / means.rows
        tokens = (instructions / rows + record) / (1 - again) + (instructions + record) * alone
        return {
            "requests": calls * 60 / rates.rpm if rates.rpm else 0.0,
            "tokens": tokens * 60 / rates.tpm if rates.tpm else 0.0,
            "latency": calls * self.seconds(step, wire) / max(1, rates.concurrency),
        }

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Cost:
        """As `state` has it. Raises KeyError, TypeError or ValueError for what is none."""
        by_size = {int(step): Means.of(kept) for step, kept in state["by_size"].items()}
        return cls(Means.of(state["all"]), by_size)

    def state(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "all": asdict(self.all),
            "by_size": {str(step): asdict(means) for step, means in self.by_size.items()},
        }
