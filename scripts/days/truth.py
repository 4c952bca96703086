"""What is true of each record of a made day; kept apart from the input.

Invariant: a record is named by the file it is in (without folders) and the byte offset of its
first byte there, which is `Record.position` in a run's results.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import orjson

from job.records import Kind

Outcome = Literal["problem", "normal", "positive", "refused"]
"""`refused`: no provider answers this record, it must end as failed."""


@dataclass(frozen=True, slots=True)
class TrueRecord:
    """The truth about one record; `cause` is the planted cause, or what was praised, or None."""

    source: str
    position: int
    kind: Kind
    lang: str
    outcome: Outcome
    cause: str | None

    @property
    def key(self) -> tuple[str, int]:
        """What names the record in a run's results."""
        return self.source, self.position


def write_truth(path: Path, records: Iterable[TrueRecord]) -> None:
    """A JSON array, one record a line."""
    lines = ",\n".join(orjson.dumps(asdict(record)).decode() for record in records)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def read_truth(path: Path) -> dict[tuple[str, int], TrueRecord]:
    """The records of a truth file by their key."""
    records = [TrueRecord(**row) for row in orjson.loads(path.read_bytes())]
    return {record.key: record for record in records}
