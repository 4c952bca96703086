"""Results -> totals: all counting is done here, by code, over tables of `RESULT_SCHEMA`.

Invariant: one table is in memory at a time, and the same results give the same totals in whatever
tables they come. What the model said is never counted by the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from job.records import SEVERITIES
from job.reduce.contradictions import ALARMS
from job.reduce.pieces import TEXT_CHARS, make_piece, time_key, wording, worst_key
from job.reduce.promises import MAYBE
from job.reduce.tallies import Distinct, Names, hash64
from job.reduce.totals import QUARTER_US, ThemeTotals, Totals, widen

_USERS = ("conversation", "feedback")
"""Kinds in which users speak: an entry of a log praises nothing."""
_COLUMNS = (
    "id",
    "source",
    "position",
    "time",
    "kind",
    "lang",
    "text",
    "user",
    "session",
    "service",
    "host",
    "level",
    "rating",
    "outcome",
    "issues",
)


def reduce_results(tables: Iterable[pa.Table]) -> Totals:
    """The totals of all rows of `tables` (each of `RESULT_SCHEMA`), taken one table at a time."""
    totals = Totals()
    for table in tables:
        _count(table, totals)
        for row in _telling_rows(table):
            _take(row, totals)
        for session, text in _conversations(table):
            totals.contradictions.take_conversation(session, text)
    totals.trim()
    return totals


def _count(table: pa.Table, totals: Totals) -> None:
    """Count what needs no look at single rows."""
    groups = table.group_by(["kind", "via", "outcome"]).aggregate([([], "count_all")])
    for row in groups.to_pylist():
        totals.records[row["kind"], row["via"], row["outcome"] or ""] += row["count_all"]
    for flag in pc.value_counts(pc.list_flatten(table["flags"])).to_pylist():
        totals.flags[flag["values"]] += flag["counts"]
    times = table["time"].cast(pa.int64())
    span = pc.min_max(times).as_py()
    totals.timed += len(times) - times.null_count
    rated = table.select(["source", "rating"]).filter(pc.is_valid(table["rating"]))
    highest = rated.group_by(["source"]).aggregate([("rating", "max")])
    for row in highest.to_pylist():
        totals.contradictions.take_rating(row["source"], row["rating_max"])
    totals.first, totals.last = widen(totals.first, totals.last, span["min"], span["max"])


def _telling_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The problem and positive rows, and errors in which nothing is wrong; their time in
    microseconds."""
    outcome = table["outcome"]
    wanted = pc.or_(
        pc.is_in(outcome, pa.array(["problem", "positive"])),
        pc.and_(pc.equal(outcome, "normal"), pc.is_in(table["level"], pa.array(ALARMS))),
    )
    rows = table.select(_COLUMNS).filter(wanted)
    at = rows.schema.get_field_index("time")
    rows = rows.set_column(at, "time", rows["time"].cast(pa.int64()))
    for batch in rows.to_batches(max_chunksize=2_048):
        yield from batch.to_pylist()


def _conversations(table: pa.Table) -> Iterator[tuple[str, str]]:
    """Session and text of the conversations in which something may be promised."""
    wanted = pc.and_(pc.equal(table["kind"], "conversation"), pc.is_valid(table["session"]))
    rows = table.select(["session", "text"]).filter(wanted)
    rows = rows.filter(pc.match_substring_regex(rows["text"], MAYBE))
    for batch in rows.to_batches(max_chunksize=2_048):
        yield from zip(batch["session"].to_pylist(), batch["text"].to_pylist(), strict=True)


def _take(row: dict[str, Any], totals: Totals) -> None:
    """Count one telling row and offer it as evidence to its themes."""
    issues = row["issues"] or []
    for issue in issues:
        if issue["quote"] is not None and issue["quote"] not in row["text"]:
            issue["quote"] = None
            totals.misquoted += 1
    totals.contradictions.take(row, *_gravest(issues))
    if row["outcome"] == "normal" or (row["outcome"] == "positive" and row["kind"] not in _USERS):
        return
    by_theme: dict[str, list[dict[str, Any]]] = {}
    for issue in issues:
        by_theme.setdefault(issue["theme"] or "", []).append(issue)
    themed = {theme: mine for theme, mine in by_theme.items() if theme} or {"": issues}
    user = hash64(row["user"]) if row["user"] else None
    if row["outcome"] == "problem":
        quarter = None if row["time"] is None else row["time"] // QUARTER_US
        totals.problems[quarter, _gravest(issues)[0]] += 1
        if user is not None:
            totals.users.add(user)
    kept = totals.themes if row["outcome"] == "problem" else totals.praise
    for theme, mine in themed.items():
        _add(kept.setdefault(theme, ThemeTotals()), row, mine)


def _add(theme: ThemeTotals, row: dict[str, Any], issues: list[dict[str, Any]]) -> None:
    """Count `row` in `theme`, to which `issues` of it belong."""
    record, time = row["id"], row["time"]
    drawn = hash64(record)
    theme.records += 1
    theme.issues += len(issues)
    theme.severities.update(issue["severity"] or "info" for issue in issues)
    theme.kinds[row["kind"]] += 1
    theme.first, theme.last = widen(theme.first, theme.last, time, time)
    if time is not None:
        theme.quarters[time // QUARTER_US] += 1
        theme.timeline.add(time)
    for field, name in names_of(row):
        theme.names.setdefault(field, Names()).add(name, drawn)
        theme.distinct.setdefault(field, Distinct()).add(hash64(name))
    if row["kind"] == "operation":
        theme.varied.add(row["text"])
    severity, issue = _gravest(issues)
    words = issue["quote"] if issue.get("quote") else row["text"]
    offers = (
        (theme.earliest, (0, time_key(time), record), record),
        (theme.worst, worst_key(severity, time, record), wording(words[:TEXT_CHARS])),
        (theme.sample, (drawn, 0, record), record),
    )
    if any(best.wants(key) for best, key, _ in offers):
        piece = make_piece(row, issue, issue.get("quote"), severity)
        for best, key, group in offers:
            best.offer(key, group, piece)


def names_of(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Who and what a record names; an entry of an operation log that names no place has its file
    for one: one process writes a log."""
    for field in ("user", "service", "host"):
        if row[field]:
            yield field, row[field]
    if row["kind"] == "operation" and not row["service"] and not row["host"]:
        yield "source", row["source"]


def _gravest(issues: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """The severity of the worst issue, and the first issue that has it; "info" and {} without."""
    severity = max((i["severity"] or "info" for i in issues), key=SEVERITIES.index, default="info")
    return severity, next((i for i in issues if (i["severity"] or "info") == severity), {})
