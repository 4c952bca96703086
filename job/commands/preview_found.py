"""What a plan has found: its numbers, and what was read of each file.

Invariant: what is counted comes from the manifests that the run's own reading wrote.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from job.ledger import read_manifests, sum_counts
from job.planning import RunPlan
from job.records import Lane, Record
from job.run_folder import RunFolder
from serve.ask.contract import Request

SHOWN_FILES = 10
"""Files of which a plan shows the first records."""
SHOWN_CHARACTERS = 240
"""Of the text of a record that a plan shows."""
_NUMBERS = ("records", "rejected", "skipped", "rejected_by", "skipped_by")
_FIELDS = ("kind", "level", "rating", "user", "session", "service", "host")


@dataclass(slots=True)
class Preview:
    """The plan of a run in numbers. `calls`, `tokens_in` and `tokens_out` are those of the whole
    run, with those of the naming of themes and of the canary; `canary`: its calls about single
    records; `asking_minutes` those with calls, `minutes` those of the command; `cost` is in
    `currency`, None where the prices are not known (`prices`: where they come from). `ranges`:
    between what each is to be expected; `earlier_runs`: from how many that comes; `bounded`: what
    the time depends on; `instructions`: what is known of the user's own."""

    files: list[dict[str, Any]] = field(default_factory=list)
    ignored: int = 0
    language: str = ""
    model: str = ""
    instructions: str = ""
    read: int = 0
    records: int = 0
    rejected: int = 0
    skipped: int = 0
    folded: int = 0
    recalled: int = 0
    to_ask: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    masked: dict[str, int] = field(default_factory=dict)
    skipped_by: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    packs: dict[Lane, int] = field(default_factory=dict)
    pack_tokens: int = 0
    naming: int = 0
    canary: int = 0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    prices: str | None = None
    currency: str | None = None
    asking_minutes: float = 0.0
    minutes: float = 0.0
    ranges: dict[str, list[float]] = field(default_factory=dict)
    earlier_runs: int = 0
    bounded: str = ""
    first_request: Request | None = None

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        values = asdict(self)
        request = values.pop("first_request")
        if request is not None:
            values["first_request"] = {"system": request["system"], "user": request["user"]}
        return values


def count_files(plan: RunPlan, folder: RunFolder, found: Preview) -> None:
    """Fill in what was read, file by file, from the manifests in `folder`."""
    held = read_manifests(folder.manifests)
    for number, (facts, look) in enumerate(zip(plan.facts, plan.looks, strict=True)):
        counts = sum_counts(facts["source"], held.get(facts["source"], []))
        numbers = {name: getattr(counts, name) for name in _NUMBERS}
        shown = look.shown if number < SHOWN_FILES else ()
        found.files.append(facts | numbers | {"first": [_shown(record) for record in shown]})
        found.read += counts.read
        found.records += counts.records
        found.rejected += counts.rejected
        found.skipped += counts.skipped
        found.folded += counts.folded
        found.kinds = dict(Counter(found.kinds) + Counter(counts.kinds))
        found.masked = dict(Counter(found.masked) + Counter(counts.masked))
        found.skipped_by = dict(Counter(found.skipped_by) + Counter(counts.skipped_by))


def _shown(record: Record) -> dict[str, Any]:
    """A record as a plan shows it: what it was understood to be, and how its text begins."""
    known = {name: getattr(record, name) for name in _FIELDS}
    known["time"] = record.time.isoformat() if record.time else None
    text = record.text[:SHOWN_CHARACTERS]
    shown = text + "..." if len(record.text) > SHOWN_CHARACTERS else text
    return {name: value for name, value in known.items() if value is not None} | {"text": shown}
