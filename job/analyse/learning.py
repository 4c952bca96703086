"""What replies teach: the one place where a run learns from them. Pure.

Invariant: a cut or broken reply teaches nothing about the length of answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from job.analyse.requests import pack_wire
from job.estimates.kept import Earlier, Repeats, RunEstimates
from job.estimates.moments import Moments
from job.pack.cost import Pack, Rates
from job.pack.packing import BYTES_A_TOKEN, Fit, Item
from job.pack.size import PackSize
from job.records import KINDS
from job.validate import Verdict
from serve.ask.contract import Reply, Request
from serve.ask.errors import AskError, ContextOverflow, TimedOut
from serve.ask.permit import LimiterStats
from serve.ask.settings import Provider


@dataclass(slots=True)
class Learning:
    """Learns from every reply, for the packs that follow. `size` finds the size of packs, None in
    single mode. Of the answered calls: `calls` that had a record never asked before, `first` such
    records and `sent` all records in them, and the tokens of the others, which only repeat."""

    fit: Fit
    size: PackSize | None = None
    earlier: Earlier = field(default_factory=Earlier)
    ratio: Moments = field(default_factory=Moments)
    calls: int = 0
    first: int = 0
    sent: int = 0
    repeat_in: Moments = field(default_factory=Moments)
    repeat_out: Moments = field(default_factory=Moments)

    @classmethod
    def about(cls, provider: Provider, fit: Fit, pack_tokens: int | None) -> Learning:
        """Learn about what `provider` answers. `pack_tokens`: the size of packs, None where it
        finds itself."""
        if fit.mode == "single":
            return cls(fit)
        return cls(fit, PackSize(Rates.of(provider), pack_tokens))

    def begin_with(self, earlier: Earlier) -> None:
        """Go by what earlier runs have learned, until this one knows better."""
        self.earlier = earlier
        self.fit.reserve.earlier = earlier.answers
        self.fit.seconds.earlier = earlier.seconds
        if earlier.ratio.n:
            self.fit.ratio = earlier.ratio.mean
        if self.size is not None:
            self.size = PackSize.from_state(earlier.packs, self.size.rates, self.size.fixed)
            self.fit.wire = self.size.wire

    def heed(self, stats: LimiterStats) -> None:
        """Go by the limits that the limiter has found."""
        if self.size is not None:
            self.size.rates = self.size.rates.found(stats)

    def observe(
        self, items: Sequence[Item], request: Request, reply: Reply, verdict: Verdict
    ) -> None:
        """Learn from the reply to `request` about `items`, judged as `verdict`."""
        kind, lane = items[0].record.kind, items[0].record.lane
        usage = reply.usage
        self.fit.observe_input(request.estimate_in, usage.tokens_in)
        if request.estimate_in and usage.tokens_in:
            self.ratio = self.ratio.seen(usage.tokens_in / request.estimate_in)
        if verdict.whole:
            self.fit.observe_output(kind, lane, usage.tokens_out, verdict.weights)
        if first := sum(not (item.asked or item.draft or item.rounds) for item in items):
            self.calls += 1
            self.first += first
            self.sent += len(items)
        else:
            self.repeat_in = self.repeat_in.seen(usage.tokens_in)
            self.repeat_out = self.repeat_out.seen(usage.tokens_out)
        tokens = usage.tokens_in + usage.tokens_out or self._tokens_about(items, request)
        self.fit.seconds.observe(kind, lane, tokens, reply.seconds)
        self._size_up(
            items,
            Pack(
                self._wire(items),
                len(items),
                len(verdict.wrong),
                usage.tokens_in or round(request.estimate_in * self.fit.ratio),
                usage.tokens_out or round(sum(verdict.weights.values()) / BYTES_A_TOKEN),
                reply.seconds,
                verdict.whole,
            ),
        )

    def _size_up(self, items: Sequence[Item], pack: Pack) -> None:
        """Learn about the size of packs from one, unless all its records were asked for before:
        those are the odd ones."""
        if self.size is not None and not all(item.asked or item.draft for item in items):
            self.size.observe(pack)
            self.fit.wire = self.size.wire

    def gave_up(self, items: Sequence[Item], request: Request, error: AskError) -> None:
        """Learn from a request that was not answered in time: it takes that long at least."""
        if isinstance(error, TimedOut):
            kind, lane = items[0].record.kind, items[0].record.lane
            self.fit.seconds.observe(
                kind, lane, self._tokens_about(items, request), request.timeout
            )
        if isinstance(error, TimedOut | ContextOverflow) and len(items) > 1:
            lost = Pack(self._wire(items), len(items), len(items), 0, 0, 0.0, whole=False)
            self._size_up(items, lost)

    def entry(self, run: str, began: float) -> RunEstimates:
        """What this run has learned, to be kept."""
        again = Moments(self.first, self.sent / self.first) if self.first else Moments()
        repeats = Moments(self.calls, self.repeat_in.n / self.calls) if self.calls else Moments()
        return RunEstimates(
            *(run, began, self.fit.reserve.own, self.fit.seconds.own, self.ratio, again),
            repeats=Repeats(repeats, self.repeat_in, self.repeat_out),
            packs=None if self.size is None else self.size.state(),
        )

    def facts(self) -> dict[str, Any]:
        """For `timing.json`: what answers and calls take, and from how many earlier runs the run
        began."""
        return {
            "earlier_runs": self.earlier.runs,
            "seconds_a_call": round(self._seconds_a_call(), 3),
            "input_ratio": round(self.fit.ratio, 4),
            "answer_tokens": {
                "/".join(key): {
                    "answers": int(own.n),
                    "mean": round(own.mean, 1),
                    "deviation": round(own.deviation, 1),
                }
                for key, own in sorted(self.fit.reserve.own.items())
            },
            "call_seconds": {
                "/".join(key): {
                    "calls": int(own.n),
                    "mean": round(own.y, 2),
                    "deviation": round(own.deviation, 2),
                }
                for key, own in sorted(self.fit.seconds.own.items())
            },
        }

    def _seconds_a_call(self) -> float:
        """Of all calls of this run, or before the first what a full pack takes."""
        calls = sum(own.n for own in self.fit.seconds.own.values())
        if calls:
            return sum(own.n * own.y for own in self.fit.seconds.own.values()) / calls
        return max(self.fit.seconds.expected(kind, "fast", self.fit.wire["fast"]) for kind in KINDS)

    def _wire(self, items: Sequence[Item]) -> float:
        """Tokens of the lines of a pack, as the provider counts them."""
        return pack_wire(items) * self.fit.ratio

    def _tokens_about(self, items: Sequence[Item], request: Request) -> float:
        kind, lane = items[0].record.kind, items[0].record.lane
        return request.estimate_in * self.fit.ratio + self.fit.reserve.expected(
            kind, lane, len(items)
        )
