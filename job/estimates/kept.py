"""What runs keep for those that follow: an entry of each of the last, as small JSON. Pure.

Invariant: an entry is a run's own, put in again whenever it has learned more; merging two stores of
entries gives the same whatever their order, and twice the same as once. So of two runs that end at
once none takes back what the other kept, but for what it learned since its last saving, where both
write within milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from job.estimates.moments import Line, Moments
from job.estimates.reserve import KindLane
from job.records import KINDS, LANES

RUNS_KEPT = 8
"""The last of them: older ones hardly count any more."""
ANSWERS_REMEMBERED = 200.0
"""As many answers of a kind and lane all earlier runs together count at most: what a changed model
answers outweighs them after a few packs."""
CALLS_REMEMBERED = 30.0
"""The same for calls."""
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Repeats:
    """Calls that hold no record that was not asked before (repairs, halves, single ones):
    `number` of them for each other call, and the tokens of one."""

    number: Moments = field(default_factory=Moments)
    tokens_in: Moments = field(default_factory=Moments)
    tokens_out: Moments = field(default_factory=Moments)

    def merged(self, other: Repeats) -> Repeats:
        """Those of both, of bounded weight."""
        return Repeats(
            self.number.merged(other.number).aged(CALLS_REMEMBERED),
            self.tokens_in.merged(other.tokens_in).aged(CALLS_REMEMBERED),
            self.tokens_out.merged(other.tokens_out).aged(CALLS_REMEMBERED),
        )


@dataclass(frozen=True, slots=True)
class RunEstimates:
    """What one run saw. `run` names it, `at` is when it began (seconds since the epoch).
    `answers`: output tokens of an answer; `seconds`: of a call by its tokens; `ratio`: the
    provider's count of input tokens over ours, of a call; `again`: records of a pack for each of
    them that was never asked before; `repeats`: what was asked beside; `packs`: the state of the
    pack size."""

    run: str
    at: float
    answers: Mapping[KindLane, Moments] = field(default_factory=dict)
    seconds: Mapping[KindLane, Line] = field(default_factory=dict)
    ratio: Moments = field(default_factory=Moments)
    again: Moments = field(default_factory=Moments)
    repeats: Repeats = field(default_factory=Repeats)
    packs: Mapping[str, Any] | None = None

    @property
    def weight(self) -> float:
        """How much it saw: answers and calls."""
        seen: list[Moments | Line] = [*self.answers.values(), *self.seconds.values()]
        return sum(each.n for each in seen)


@dataclass(frozen=True, slots=True)
class Kept:
    """The entries of the last runs."""

    runs: tuple[RunEstimates, ...] = ()

    def merged(self, other: Kept) -> Kept:
        """The last runs of both; of a run that is in both the entry that saw more."""
        best: dict[str, RunEstimates] = {}
        for run in (*self.runs, *other.runs):
            if run.run not in best or run.weight > best[run.run].weight:
                best[run.run] = run
        return Kept(tuple(_by_age(best.values())[-RUNS_KEPT:]))


def _by_age(runs: Iterable[RunEstimates]) -> list[RunEstimates]:
    return sorted(runs, key=lambda run: (run.at, run.run))


@dataclass(frozen=True, slots=True)
class Earlier:
    """What the kept runs say together, the later the more; all of bounded weight. `spread`: how
    far the means of the runs lie apart, as a share of the mean; None where that cannot be told.
    `packs`: the state of the pack size that the last of them left."""

    runs: int = 0
    answers: Mapping[KindLane, Moments] = field(default_factory=dict)
    seconds: Mapping[KindLane, Line] = field(default_factory=dict)
    ratio: Moments = field(default_factory=Moments)
    again: Moments = field(default_factory=Moments)
    repeats: Repeats = field(default_factory=Repeats)
    spread: float | None = None
    packs: Mapping[str, Any] | None = None


def earlier_of(kept: Kept) -> Earlier:
    """The estimates to begin with."""
    answers: dict[KindLane, Moments] = {}
    seconds: dict[KindLane, Line] = {}
    ratio = again = Moments()
    repeats = Repeats()
    packs: Mapping[str, Any] | None = None
    for run in _by_age(kept.runs):
        for key, moments in run.answers.items():
            known = answers.get(key, Moments()).merged(moments)
            answers[key] = known.aged(ANSWERS_REMEMBERED)
        for key, line in run.seconds.items():
            seconds[key] = seconds.get(key, Line()).merged(line).aged(CALLS_REMEMBERED)
        ratio = ratio.merged(run.ratio).aged(CALLS_REMEMBERED)
        again = again.merged(run.again).aged(ANSWERS_REMEMBERED)
        repeats = repeats.merged(run.repeats)
        packs = run.packs or packs
    spread = _spread(kept.runs)
    return Earlier(len(kept.runs), answers, seconds, ratio, again, repeats, spread, packs)


def _spread(runs: Iterable[RunEstimates]) -> float | None:
    """Of the mean answers of runs, kind and lane by kind and lane, weighted by answers."""
    of_key: dict[KindLane, list[Moments]] = {}
    for run in runs:
        for key, moments in run.answers.items():
            of_key.setdefault(key, []).append(moments)
    total = weight = 0.0
    for means in of_key.values():
        each = Moments()
        for moments in means:
            each = each.seen(moments.mean)
        if each.n > 1 and each.mean > 0:
            answers = sum(moments.n for moments in means)
            total += answers * each.deviation / each.mean
            weight += answers
    return total / weight if weight else None


def encode_kept(kept: Kept) -> bytes:
    """The bytes to keep."""
    runs = [
        {
            "run": run.run,
            "at": run.at,
            "answers": {"/".join(key): value.numbers() for key, value in run.answers.items()},
            "seconds": {"/".join(key): value.numbers() for key, value in run.seconds.items()},
            "ratio": run.ratio.numbers(),
            "again": run.again.numbers(),
            "repeats": [
                run.repeats.number.numbers(),
                run.repeats.tokens_in.numbers(),
                run.repeats.tokens_out.numbers(),
            ],
            "packs": run.packs,
        }
        for run in kept.runs
    ]
    return orjson.dumps({"version": _VERSION, "runs": runs})


def decode_kept(value: bytes | None) -> Kept:
    """The inverse of `encode_kept`; nothing for bytes of another version or none at all (a damaged
    store): what was learned is learned again."""
    if value is None:
        return Kept()
    try:
        data = orjson.loads(value)
        if data["version"] != _VERSION:
            return Kept()
        return Kept(tuple(_run_of(run) for run in data["runs"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return Kept()


def _run_of(data: Mapping[str, Any]) -> RunEstimates:
    return RunEstimates(
        str(data["run"]),
        float(data["at"]),
        {_key(name): Moments.of(value) for name, value in data["answers"].items()},
        {_key(name): Line.of(value) for name, value in data["seconds"].items()},
        Moments.of(data["ratio"]),
        Moments.of(data["again"]),
        Repeats(*(Moments.of(each) for each in data["repeats"])),
        data["packs"] if isinstance(data["packs"], dict) else None,
    )


def _key(name: str) -> KindLane:
    kind, _, lane = name.partition("/")
    if kind not in KINDS or lane not in LANES:
        raise ValueError(f"no kind and lane: {name!r}")
    return kind, lane
