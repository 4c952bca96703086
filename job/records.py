"""The only rows that travel between stations: Record, Issue, Answer, Result, Rejected.

Invariant: a row never changes its `id`, `source`, `position` or `text` after `clean` made it, and
every station hands on exactly the rows it was given, so that the account in `ledger.py` balances.
The Arrow schemas here are fixed: a column never takes its type from the rows that happen to be in
a block (a column of nulls would become type null and break Parquet).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import pyarrow as pa

from serve.ask.judgement import OUTCOMES as OUTCOMES
from serve.ask.judgement import SEVERITIES as SEVERITIES
from serve.ask.judgement import Basis as Basis
from serve.ask.judgement import Outcome as Outcome
from serve.ask.judgement import Severity as Severity

Kind = Literal["conversation", "operation", "feedback"]
Lane = Literal["fast", "slow"]
Via = Literal["answered", "recalled", "folded", "review", "failed", "unasked"]

KINDS: tuple[Kind, ...] = get_args(Kind)
LANES: tuple[Lane, ...] = get_args(Lane)
VIAS: tuple[Via, ...] = get_args(Via)


@dataclass(frozen=True, slots=True)
class Record:
    """One cleaned record.

    `id`: from source and position, starts with a letter, the same in every run.
    `source`: the file as the user named it; `position`: byte offset in the (decompressed) file.
    `time`: aware, UTC, or None; always from the data. `lang`: "zh", "en" or "other".
    `text`: rendered for reading and masked, without its own time, level and rating.
    `tokens`: of `text`, as `serve.ask.tokens` counts. `digest`: what must be equal to be folded.
    `flags`: what was odd about it, by name, sorted, each once.
    """

    id: str
    source: str
    position: int
    time: datetime | None
    kind: Kind
    lang: str
    text: str
    user: str | None = None
    session: str | None = None
    service: str | None = None
    host: str | None = None
    level: str | None = None
    rating: float | None = None
    tokens: int = 0
    lane: Lane = "fast"
    digest: str = ""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing a record says: what happened and why. `quote` is a substring of the record's text
    or None. `theme` is filled in after grouping."""

    event: str
    cause: str | None
    basis: Basis
    suggestion: str | None
    severity: Severity
    quote: str | None
    theme: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What an analyst (a model or the built-in rules) says of one record."""

    outcome: Outcome
    issues: tuple[Issue, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """A record and what became of it; each record that entered `analyse` leaves as exactly one.

    `outcome` is None where nothing usable came back (`via` failed or unasked). `reason`,
    `provider_message` and `attempts` say why, for `failed.jsonl` and `review.jsonl`.
    """

    record: Record
    via: Via
    outcome: Outcome | None = None
    issues: tuple[Issue, ...] = ()
    represented_by: str | None = None
    model: str | None = None
    reason: str | None = None
    provider_message: str | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Raw:
    """One record as it stood in its file, before `clean`.

    `value`: a dict for JSON objects, CSV rows (column -> cell) and logfmt lines; a list for a JSON
    array that is itself one record; a str for plain text (its lines joined by "\\n"). `form` says
    which notation it was in; `flags` what reading noticed (bad bytes, a missing last line, ...).
    `copy`: its number among the records that one line stands for ("message repeated 5 times").
    """

    source: str
    position: int
    value: dict[str, Any] | list[Any] | str
    form: Literal["json", "csv", "logfmt", "text"]
    flags: tuple[str, ...] = ()
    copy: int = 0


@dataclass(frozen=True, slots=True)
class Rejected:
    """Input that could not become a record. `reason` is one word of a fixed set (see `job/clean`),
    `detail` says what exactly, `excerpt` is masked and at most 200 characters."""

    source: str
    position: int
    reason: str
    detail: str = ""
    excerpt: str = ""


_TIME = pa.timestamp("us", tz="UTC")

RECORD_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("time", _TIME),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("lang", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("user", pa.string()),
        pa.field("session", pa.string()),
        pa.field("service", pa.string()),
        pa.field("host", pa.string()),
        pa.field("level", pa.string()),
        pa.field("rating", pa.float64()),
        pa.field("tokens", pa.int32(), nullable=False),
        pa.field("lane", pa.string(), nullable=False),
        pa.field("digest", pa.string(), nullable=False),
        pa.field("flags", pa.list_(pa.string()), nullable=False),
    ]
)

ISSUE_TYPE = pa.struct(
    [
        pa.field("event", pa.string()),
        pa.field("cause", pa.string()),
        pa.field("basis", pa.string()),
        pa.field("suggestion", pa.string()),
        pa.field("severity", pa.string()),
        pa.field("quote", pa.string()),
        pa.field("theme", pa.string()),
    ]
)

RESULT_SCHEMA = pa.schema(
    [
        *RECORD_SCHEMA,
        pa.field("via", pa.string(), nullable=False),
        pa.field("outcome", pa.string()),
        pa.field("issues", pa.list_(ISSUE_TYPE), nullable=False),
        pa.field("represented_by", pa.string()),
        pa.field("model", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("provider_message", pa.string()),
        pa.field("attempts", pa.int32(), nullable=False),
    ]
)

_RECORD_FIELDS = tuple(f.name for f in fields(Record))
_RESULT_FIELDS = tuple(f.name for f in fields(Result) if f.name not in ("record", "issues"))


def records_to_table(records: Sequence[Record]) -> pa.Table:
    """Records as one Arrow table of `RECORD_SCHEMA`."""
    columns = {name: [getattr(r, name) for r in records] for name in _RECORD_FIELDS}
    return pa.table(columns, schema=RECORD_SCHEMA)


def record_from_row(row: dict[str, Any]) -> Record:
    """One row of a table of `RECORD_SCHEMA` (or a wider one) as a Record."""
    values = {name: row[name] for name in _RECORD_FIELDS}
    values["flags"] = tuple(row["flags"] or ())
    if values["time"] is not None:
        values["time"] = values["time"].astimezone(UTC)
    return Record(**values)


def table_to_records(table: pa.Table) -> list[Record]:
    """The inverse of `records_to_table`."""
    return [record_from_row(row) for row in table.to_pylist()]


def results_to_table(results: Iterable[Result]) -> pa.Table:
    """Results as one Arrow table of `RESULT_SCHEMA`."""
    rows = list(results)
    columns: dict[str, list[Any]] = {
        name: [getattr(r.record, name) for r in rows] for name in _RECORD_FIELDS
    }
    columns |= {name: [getattr(r, name) for r in rows] for name in _RESULT_FIELDS}
    columns["issues"] = [[asdict(issue) for issue in r.issues] for r in rows]
    return pa.table(columns, schema=RESULT_SCHEMA)


def result_from_row(row: dict[str, Any]) -> Result:
    """One row of a table of `RESULT_SCHEMA` as a Result."""
    issues = tuple(Issue(**issue) for issue in row["issues"] or ())
    values = {name: row[name] for name in _RESULT_FIELDS}
    return Result(record=record_from_row(row), issues=issues, **values)


def table_to_results(table: pa.Table) -> list[Result]:
    """The inverse of `results_to_table`."""
    return [result_from_row(row) for row in table.to_pylist()]


@dataclass(slots=True)
class SliceCounts:
    """What one slice of one file held; written as its manifest, summed by `ledger.py`.

    `read = records + rejected + skipped`. `kinds`, `flags`, `rejected_by`, `skipped_by` and
    `masked` count by name; `folded` are the records that were equal to an earlier one; `unfolded`
    those that a full fold shard let pass. `first`/`last`: the earliest and latest time, ISO 8601
    UTC.
    """

    source: str
    slice: int
    read: int = 0
    records: int = 0
    rejected: int = 0
    skipped: int = 0
    folded: int = 0
    unfolded: int = 0
    bytes: int = 0
    tokens: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    langs: dict[str, int] = field(default_factory=dict)
    flags: dict[str, int] = field(default_factory=dict)
    rejected_by: dict[str, int] = field(default_factory=dict)
    skipped_by: dict[str, int] = field(default_factory=dict)
    masked: dict[str, int] = field(default_factory=dict)
    first: str | None = None
    last: str | None = None
