"""A run's folder -> the documents that are searched: its themes, issues and records.

Rows of the same text share a group; a folded record is in the group of the one that stands for it,
since the two are the same but for what varies.

Invariant: each record, each of its issues and each theme of the run is exactly one document;
whatever is wrong with the files is a DamagedRun that says what.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from serve.ask.judgement import SEVERITIES
from serve.search.errors import DamagedRun
from serve.search.folders import open_plain
from serve.search.runs import RunFolder, result_files
from serve.search.vectors import READ_ERRORS, clipped, digest_of, is_damage

What = Literal["theme", "issue", "record"]
WHATS: tuple[What, ...] = ("theme", "issue", "record")
KINDS = ("conversation", "operation", "feedback")
UNTIMED = np.iinfo(np.int64).min
"""The time of what has none."""
NONE = -1
"""The number of a kind, position or source that is not there."""
_ROWS = 8_192
"""Rows of results read at a time."""
_RECORD = {
    "id": pa.string(),
    "source": pa.string(),
    "position": pa.int64(),
    "time": pa.timestamp("us", tz="UTC"),
    "kind": pa.string(),
    "text": pa.string(),
    "outcome": pa.string(),
    "represented_by": pa.string(),
}
_ISSUE = ("event", "cause", "severity", "theme")
_THEME = ("id", "title", "summary", "cause", "severity")

SCHEMA = pa.schema(
    [
        pa.field("what", pa.int8()),
        pa.field("id", pa.string()),
        pa.field("text", pa.string()),
        pa.field("kind", pa.int8()),
        pa.field("time", pa.int64()),
        pa.field("severities", pa.uint8()),
        pa.field("outcome", pa.string()),
        pa.field("source", pa.int32()),
        pa.field("position", pa.int64()),
        pa.field("digest", pa.binary(16)),
        pa.field("embedded", pa.binary(16)),
    ]
)
"""Of documents. `id`: of the theme, or of the record (an issue has its record's); `time`:
microseconds since the epoch; `severities`: a bit for each of SEVERITIES; `source`: the number of
its name; `digest`, `embedded`: of the text that stands for its group, and of the part of that which
is embedded."""


@dataclass(slots=True)
class Documents:
    """All that is searched of one run. `themes`: id, title and severity of each; `theme_of`: which
    document is of which theme, as pairs of numbers."""

    tables: list[pa.Table] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    themes: list[dict[str, str]] = field(default_factory=list)
    theme_of: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))

    @property
    def table(self) -> pa.Table:
        """Of SCHEMA, in the order themes, then records with their issues before them."""
        return pa.concat_tables(self.tables) if self.tables else SCHEMA.empty_table()


def read_documents(run: RunFolder) -> Documents:
    """The documents of a run by its themes.parquet and its results/*.parquet. Raises DamagedRun,
    and OSError or MemoryError where the files cannot be read now."""
    reading = _Reading()
    try:
        with open_plain(run.root, os.path.join(run.path, "themes.parquet")) as file:
            reading.themes(pq.read_table(file, columns=list(_THEME)).to_pylist())
        for path in result_files(run):
            with open_plain(run.root, path) as file, pq.ParquetFile(file) as results:
                for batch in results.iter_batches(_ROWS, columns=[*_RECORD, "issues"]):
                    reading.records(_typed(pa.Table.from_batches([batch])))
    except READ_ERRORS as error:
        if not is_damage(error):
            raise
        raise _damaged(error) from error
    return reading.documents


def _damaged(error: Exception) -> DamagedRun:
    said = str(error).partition("\n")[0][:200]
    return DamagedRun(f"its results or themes cannot be read: {said}")


def _typed(table: pa.Table) -> Iterator[dict[str, Any]]:
    columns = {name: table[name].cast(kind) for name, kind in _RECORD.items()}
    columns["time"] = columns["time"].cast(pa.int64())
    yield from pa.table({**columns, "issues": table["issues"]}).to_pylist()


class _Reading:
    """Documents as they are read."""

    def __init__(self) -> None:
        self.documents = Documents()
        self._rows = 0
        self._source_numbers: dict[str, int] = {}
        self._theme_numbers: dict[str, int] = {}
        self._digests: dict[str, dict[str, bytes]] = {}
        """Of the texts of records that may stand for others, by their ids."""

    def themes(self, rows: Sequence[dict[str, Any]]) -> None:
        """The themes of the run."""
        found = []
        for number, row in enumerate(rows):
            if row["id"] is None:
                raise ValueError("a theme without an id")
            about = {name: str(row[name]) for name in ("id", "title", "severity")}
            self.documents.themes.append(about)
            self._theme_numbers[about["id"]] = number
            text = "\n".join(dict.fromkeys(_said(row["title"], row["summary"], row["cause"])))
            found.append(_document("theme", about["id"], text, severities=_bit(row["severity"])))
            self._is_of(len(found) - 1, about["id"])
        self._add(found)

    def records(self, rows: Iterator[dict[str, Any]]) -> None:
        """Some rows of results."""
        found: list[dict[str, Any]] = []
        for row in rows:
            if row["id"] is None or row["source"] is None:
                raise ValueError("a record without an id or a source")
            shared = {
                "kind": KINDS.index(row["kind"]) if row["kind"] in KINDS else NONE,
                "time": UNTIMED if row["time"] is None else row["time"],
                "outcome": row["outcome"],
                "source": self._source(row["source"]),
                "position": row["position"],
            }
            record_severities = 0
            record = len(found) + len(row["issues"] or ())
            for issue in row["issues"] or ():
                bit = _bit(issue["severity"])
                record_severities |= bit
                for each in (len(found), record):
                    self._is_of(each, issue["theme"])
                text = "\n".join(_said(issue["event"], issue["cause"]))
                found.append(_document("issue", row["id"], text, severities=bit, **shared))
            own = _document(
                "record", row["id"], row["text"], severities=record_severities, **shared
            )
            if row["represented_by"] is None:
                self._digests[row["id"]] = {name: own[name] for name in ("digest", "embedded")}
            found.append({**own, "represented_by": row["represented_by"]})
        for document in found:
            stands = document.pop("represented_by", None)
            document.update(self._digests.get(stands, {}))
        self._add(found)

    def _add(self, documents: list[dict[str, Any]]) -> None:
        self.documents.tables.append(pa.Table.from_pylist(documents, SCHEMA))
        self._rows += len(documents)

    def _is_of(self, offset: int, theme: str | None) -> None:
        number = self._theme_numbers.get(theme) if theme is not None else None
        if number is not None:
            self.documents.theme_of[0].append(self._rows + offset)
            self.documents.theme_of[1].append(number)

    def _source(self, name: str) -> int:
        number = self._source_numbers.setdefault(name, len(self._source_numbers))
        if number == len(self.documents.sources):
            self.documents.sources.append(name)
        return number


def _document(what: What, id_: str, text: str, **known: Any) -> dict[str, Any]:
    none = {"kind": NONE, "time": UNTIMED, "outcome": None, "source": NONE, "position": NONE}
    digests = {"digest": digest_of(text), "embedded": digest_of(clipped(text))}
    return {**none, "what": WHATS.index(what), "id": id_, "text": text, **digests, **known}


def _said(*texts: str | None) -> list[str]:
    return [text for text in texts if text]


def _bit(severity: str | None) -> int:
    return 1 << SEVERITIES.index(severity) if severity in SEVERITIES else 0
