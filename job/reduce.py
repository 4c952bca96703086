"""Results -> totals: all counting is done here, by code, over tables of `RESULT_SCHEMA`.

Invariant: one table is in memory at a time, and the same results give the same totals in whatever
tables they come. What the model said is never counted by the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from job.records import SEVERITIES
from job.totals import QUARTER_US, Piece, ThemeTotals, Totals, time_key, widen, wording, worst_key

TEXT_CHARS = 1_000
"""Of a record's text, at most this many characters around the quote are kept as evidence."""
QUOTE_CHARS = 400
"""A longer quote is kept by its first characters, so that it always fits into the text kept."""

_COLUMNS = (
    "id",
    "source",
    "position",
    "time",
    "kind",
    "lang",
    "text",
    "user",
    "service",
    "outcome",
    "issues",
)


def reduce_results(tables: Iterable[pa.Table]) -> Totals:
    """The totals of all rows of `tables` (each of `RESULT_SCHEMA`), taken one table at a time."""
    totals = Totals()
    for table in tables:
        _count(table, totals)
        for row in _rows_with_issues(table):
            _take(row, totals)
    totals.trim()
    return totals


def excerpt(text: str, quote: str | None) -> tuple[str, int]:
    """A part of `text` that holds `quote`, and how many characters after the beginning it starts.

    At most `TEXT_CHARS` characters, a third of the room before the quote.
    """
    if len(text) <= TEXT_CHARS:
        return text, 0
    at = text.find(quote) if quote else 0
    room = TEXT_CHARS - len(quote or "")
    start = max(0, min(at - room // 3, len(text) - TEXT_CHARS))
    return text[start : start + TEXT_CHARS], start


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
    totals.first, totals.last = widen(totals.first, totals.last, span["min"], span["max"])


def _rows_with_issues(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The problem and positive rows, their time in microseconds."""
    wanted = table.select(_COLUMNS).filter(
        pc.is_in(table["outcome"], value_set=pa.array(["problem", "positive"]))
    )
    at = wanted.schema.get_field_index("time")
    wanted = wanted.set_column(at, "time", wanted["time"].cast(pa.int64()))
    for batch in wanted.to_batches(max_chunksize=2_048):
        yield from batch.to_pylist()


def _take(row: dict[str, Any], totals: Totals) -> None:
    """Count one problem or positive row and offer it as evidence to its themes."""
    issues = row["issues"] or []
    for issue in issues:
        if issue["quote"] is not None and issue["quote"] not in row["text"]:
            issue["quote"] = None
            totals.misquoted += 1
    by_theme: dict[str, list[dict[str, Any]]] = {}
    for issue in issues:
        by_theme.setdefault(issue["theme"] or "", []).append(issue)
    themed = {theme: mine for theme, mine in by_theme.items() if theme} or {"": issues}
    user = _hash(row["user"]) if row["user"] else None
    if row["outcome"] == "problem":
        quarter = None if row["time"] is None else row["time"] // QUARTER_US
        totals.problems[quarter, _severity(issues)] += 1
        if user is not None:
            totals.users.add(user)
    kept = totals.themes if row["outcome"] == "problem" else totals.praise
    for theme, mine in themed.items():
        _add(kept.setdefault(theme, ThemeTotals()), row, mine, user)


def _add(
    theme: ThemeTotals, row: dict[str, Any], issues: list[dict[str, Any]], user: int | None
) -> None:
    """Count `row` in `theme`, to which `issues` of it belong."""
    record, time = row["id"], row["time"]
    theme.records += 1
    theme.issues += len(issues)
    theme.kinds[row["kind"]] += 1
    theme.first, theme.last = widen(theme.first, theme.last, time, time)
    if time is not None:
        theme.quarters[time // QUARTER_US] += 1
    if user is not None:
        theme.users.add(user)
    severity = _severity(issues)
    issue = next((i for i in issues if _severity([i]) == severity), {})
    words = issue["quote"] if issue.get("quote") else row["text"]
    offers = (
        (theme.earliest, (0, time_key(time), record), record),
        (theme.worst, worst_key(severity, time, record), wording(words[:TEXT_CHARS])),
        (theme.sample, (_hash(record), 0, record), record),
    )
    if any(best.wants(key) for best, key, _ in offers):
        piece = _piece(row, issue, severity)
        for best, key, group in offers:
            best.offer(key, group, piece)


def _piece(row: dict[str, Any], issue: dict[str, Any], severity: str) -> Piece:
    quote = issue["quote"][:QUOTE_CHARS] if issue.get("quote") else None
    text, offset = excerpt(row["text"], quote)
    return Piece(
        record=row["id"],
        source=row["source"],
        position=row["position"],
        time=row["time"],
        kind=row["kind"],
        lang=row["lang"],
        service=row["service"],
        user=row["user"],
        severity=severity,
        event=issue.get("event") or "",
        cause=issue.get("cause"),
        basis=issue.get("basis") or "inferred",
        quote=quote,
        text=text,
        offset=offset,
        length=len(row["text"]),
    )


def _severity(issues: list[dict[str, Any]]) -> str:
    """That of the worst issue; "info" where there is none."""
    return max((i["severity"] or "info" for i in issues), key=SEVERITIES.index, default="info")


def _hash(name: str) -> int:
    """8 bytes of BLAKE2b: the same in every process; two of a million names meet by 3 in 10^8."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")
