"""What a run takes around the calls about records: its own seconds, and the calls that name its
themes. Kept between runs as small JSON. Pure.

Invariant: an entry is a run's own; merging keeps the last runs of both, whatever the order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

RUNS_KEPT = 8
SECONDS = 18.0
SECONDS_A_RECORD = 0.002
"""Around the calls, on two cores at rest: starting, reading until the first pack is full, grouping,
the report. What runs took is compared with this, so that what is learned from a small day says
something of a great one."""


@dataclass(frozen=True, slots=True)
class RunAround:
    """What one run took. `run` names it, `at` is when it began (seconds since the epoch);
    `seconds`: in which no call was in flight or waited for; `records`: that it read. The naming:
    its calls, their tokens and the seconds they took together. `handed_on`: where several models
    shared the records, the part of those a model was asked about that it left to the next one."""

    run: str
    at: float
    records: int
    seconds: float
    naming_calls: int
    naming_in: int
    naming_out: int
    naming_seconds: float
    handed_on: Mapping[str, float] = field(default_factory=dict)

    @property
    def slowness(self) -> float:
        """Its seconds over what so many records take by default."""
        return self.seconds / default_seconds(self.records)


@dataclass(frozen=True, slots=True)
class NamingTaken:
    """What naming took on average: calls, tokens and seconds."""

    calls: float
    tokens_in: float
    tokens_out: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Around:
    """The entries of the last runs."""

    runs: tuple[RunAround, ...] = ()

    def merged(self, other: Around) -> Around:
        """The last runs of both."""
        every = {run.run: run for run in sorted((*self.runs, *other.runs), key=_age)}
        return Around(tuple(sorted(every.values(), key=_age)[-RUNS_KEPT:]))

    def seconds(self, records: int) -> float | None:
        """What a run of so many records takes around its calls; None where none was seen."""
        if not self.runs:
            return None
        return _recent([run.slowness for run in self.runs]) * default_seconds(records)

    @property
    def naming(self) -> NamingTaken | None:
        """What naming takes; None where none was seen."""
        if not self.runs:
            return None
        return NamingTaken(
            _recent([float(run.naming_calls) for run in self.runs]),
            _recent([float(run.naming_in) for run in self.runs]),
            _recent([float(run.naming_out) for run in self.runs]),
            _recent([run.naming_seconds for run in self.runs]),
        )

    @property
    def handed_on(self) -> dict[str, float]:
        """What each model leaves to the next one; those only that were seen."""
        models = dict.fromkeys(model for run in self.runs for model in run.handed_on)
        return {
            model: _recent([run.handed_on[model] for run in self.runs if model in run.handed_on])
            for model in models
        }


def default_seconds(records: int) -> float:
    """What a run of so many records takes around its calls, about."""
    return SECONDS + SECONDS_A_RECORD * records


def _recent(values: list[float]) -> float:
    """A mean in which each run counts half as much as the one after it."""
    weights = [2.0**place for place in range(len(values))]
    return sum(w * value for w, value in zip(weights, values, strict=True)) / sum(weights)


def _age(run: RunAround) -> tuple[float, str]:
    return run.at, run.run


def encode_around(around: Around) -> bytes:
    """The bytes to keep."""
    return orjson.dumps([asdict(run) for run in around.runs])


def decode_around(value: bytes | None) -> Around:
    """The inverse of `encode_around`; nothing for bytes that are no such entries or none at all (a
    damaged store): what was learned is learned again."""
    try:
        return Around(tuple(_run_of(run) for run in orjson.loads(value or b"[]")))
    except (ValueError, KeyError, TypeError, AttributeError):
        return Around()


def _run_of(data: Mapping[str, Any]) -> RunAround:
    run = RunAround(
        str(data["run"]),
        float(data["at"]),
        int(data["records"]),
        float(data["seconds"]),
        int(data["naming_calls"]),
        int(data["naming_in"]),
        int(data["naming_out"]),
        float(data["naming_seconds"]),
        {str(model): float(part) for model, part in data.get("handed_on", {}).items()},
    )
    counts = [value for name, value in asdict(run).items() if name not in ("run", "handed_on")]
    counts += run.handed_on.values()
    if not all(math.isfinite(value) and value >= 0 for value in counts):
        raise ValueError(f"no account of a run: {data!r}")
    return run
