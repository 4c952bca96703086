"""What recalling answers has saved, added up over the runs that share a store. Pure.

Invariant: only what was asked about records counts, not names, instructions or a canary. An
estimate, and said to be one: what was not asked again is taken to have cost what the
records of the same model did that were asked.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import orjson

from job.progress import Progress
from serve.ask.ask import CallCounts

NAME = "recalls"
"""Under what the store keeps it."""
_COUNTED = ("requests", "tokens_in", "tokens_out")


@dataclass(slots=True)
class Recalls:
    """Since when (seconds since the epoch), by how many runs, and by model: records `recalled`,
    records `asked` and what those took."""

    since: float
    runs: int = 0
    models: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def recalled(self) -> int:
        """Records that were recalled."""
        return sum(counts["recalled"] for counts in self.models.values())

    def saved(self) -> dict[str, int]:
        """Requests and tokens that were not paid again, about; of models that were never asked
        while this was counted, nothing is known."""
        saved = dict.fromkeys(_COUNTED, 0)
        for counts in self.models.values():
            for name in _COUNTED if counts["asked"] else ():
                saved[name] += round(counts["recalled"] * counts[name] / counts["asked"])
        return saved

    def add(self, model: str, asking: Progress, calls: CallCounts) -> None:
        """Count the asking of a run, which took `calls`."""
        names = ("recalled", "asked", *_COUNTED)
        counts = self.models.setdefault(model, dict.fromkeys(names, 0))
        counts["recalled"] += asking.from_store
        counts["asked"] += asking.asked
        for name in _COUNTED:
            counts[name] += getattr(calls, name)
        self.runs += 1

    def encode(self) -> bytes:
        """The bytes to keep."""
        return orjson.dumps(asdict(self))


def decode_recalls(value: bytes | None, now: float) -> Recalls:
    """The inverse of `Recalls.encode`; a new count from `now` on where there is none."""
    try:
        found = Recalls(**orjson.loads(value or b""))
        found.saved()
    except (orjson.JSONDecodeError, TypeError, KeyError, AttributeError):
        return Recalls(now)
    return found
