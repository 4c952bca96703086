"""A second look at the results, for what only the first could say to look for.

That is: the records behind broken promises (a promise and the entry of the log that speaks against
it stand in different files), the messages of which an incident consists, and the exact counts of
names where there were too many to count all.

Invariant: as of all totals, what is seen of the parts of a whole merges to what is seen of the
whole; one table is in memory at a time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from job.reduce.contradictions import EVIDENCE, session_of
from job.reduce.counting import names_of
from job.reduce.incidents import find_incidents
from job.reduce.pieces import Best, Piece, make_piece, time_key
from job.reduce.promises import MAYBE, promise_in, topics_of
from job.reduce.tallies import CANDIDATES, Names, hash64
from job.reduce.totals import Totals

COLUMNS = [
    *("id", "source", "position", "time", "kind", "lang", "text"),
    *("user", "session", "service", "host", "outcome", "issues"),
]

_DIGITS = re.compile(r"\d+")

Named = tuple[str, str, str]
"""A theme, a field of its records, a name in that field."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to look for: `broken` sessions (see `Contradictions.broken`), of which those in `shown`
    give evidence; the `names` whose records are to be counted; `outbreaks`: by theme the incident
    of which it is a part, and from when to when (in microseconds) its messages are."""

    broken: Mapping[int, int] = field(default_factory=dict)
    shown: frozenset[int] = frozenset()
    names: frozenset[Named] = frozenset()
    outbreaks: Mapping[str, tuple[str, int, int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.broken or self.names or self.outbreaks)


@dataclass(slots=True)
class Seen:
    """What was found: `broken` counts the records with a promise that their session's log breaks;
    `promises` and `logs` hold a piece of each shown session; `names` count records, and `messages`
    those of a theme's outbreak by what they say, numbers aside: a record counts once in an
    incident, for the first of its issues that is a part of it."""

    broken: int = 0
    promises: Best = field(default_factory=lambda: Best(EVIDENCE))
    logs: Best = field(default_factory=lambda: Best(EVIDENCE))
    names: Counter[Named] = field(default_factory=Counter)
    messages: dict[str, Names] = field(default_factory=dict)

    def absorb(self, other: Seen) -> None:
        """Add what `other` saw."""
        self.broken += other.broken
        self.promises.absorb(other.promises)
        self.logs.absorb(other.logs)
        self.names.update(other.names)
        for theme, messages in other.messages.items():
            self.messages.setdefault(theme, Names()).absorb(messages)

    def pairs(self) -> list[tuple[Piece, Piece]]:
        """A promise and the entry of a log that speaks against it, for each shown session."""
        both = sorted(self.promises.kept.keys() & self.logs.kept.keys())
        return [(self.promises.kept[s][1], self.logs.kept[s][1]) for s in both]


def wanted(totals: Totals) -> Wanted:
    """What the totals of a whole run leave to be looked for."""
    broken = totals.contradictions.broken()
    names = {
        (theme, field, name)
        for theme, counts in totals.themes.items()
        for field, names in counts.names.items()
        if not names.exact
        for name, _ in names.top(CANDIDATES)
    }
    outbreaks = {
        outbreak.theme: (incident.id, outbreak.first, outbreak.last)
        for incident in find_incidents(totals.themes, totals.first, totals.last)
        for outbreak in incident.outbreaks
    }
    return Wanted(broken, frozenset(sorted(broken)[:EVIDENCE]), frozenset(names), outbreaks)


def look_again(tables: Iterable[pa.Table], wanted: Wanted) -> Seen:
    """What `tables` (of `COLUMNS`) hold of `wanted`."""
    seen = Seen()
    for table in tables:
        if wanted.broken:
            for row in _rows(table, _in_sessions(table)):
                _see_session(row, wanted, seen)
        if wanted.names or wanted.outbreaks:
            for row in _rows(table, pc.equal(table["outcome"], "problem")):
                _see_problem(row, wanted, seen)
    return seen


def _in_sessions(table: pa.Table) -> pa.ChunkedArray:
    """The conversations in which something may be promised and the operations that failed."""
    said = pc.match_substring_regex(table["text"], MAYBE)
    talk = pc.and_(pc.equal(table["kind"], "conversation"), said)
    failed = pc.and_kleene(
        pc.equal(table["kind"], "operation"), pc.equal(table["outcome"], "problem")
    )
    return pc.and_(pc.is_valid(table["session"]), pc.or_kleene(talk, failed))


def _rows(table: pa.Table, mask: pa.ChunkedArray) -> Iterator[dict[str, Any]]:
    rows = table.select(COLUMNS).filter(mask)
    at = COLUMNS.index("time")
    rows = rows.set_column(at, "time", rows["time"].cast(pa.int64()))
    for batch in rows.to_batches(max_chunksize=2_048):
        yield from batch.to_pylist()


def _see_session(row: Mapping[str, Any], wanted: Wanted, seen: Seen) -> None:
    session = session_of(row["session"])
    topics = wanted.broken.get(session)
    if topics is None:
        return
    key = session, time_key(row["time"]), row["id"]
    if row["kind"] == "operation":
        if session in wanted.shown and topics & topics_of(row["text"]):
            seen.logs.offer(key, str(session), make_piece(row, {}, None, "info"))
        return
    promise = promise_in(row["text"])
    if promise is not None and topics & promise.topics:
        seen.broken += 1
        if session in wanted.shown:
            piece = make_piece(row, {}, promise.quote, "info")
            seen.promises.offer(key, str(session), piece)


def _see_problem(row: Mapping[str, Any], wanted: Wanted, seen: Seen) -> None:
    issues = row["issues"] or []
    if wanted.names:
        for theme in {issue["theme"] for issue in issues if issue["theme"]} or {""}:
            seen.names.update({(theme, *name) for name in names_of(row)} & wanted.names)
    counted: set[str] = set()
    for issue in issues:
        incident, first, last = wanted.outbreaks.get(issue["theme"], ("", 1, 0))
        if row["time"] is None or not first <= row["time"] <= last or incident in counted:
            continue
        counted.add(incident)
        messages = seen.messages.setdefault(issue["theme"], Names())
        messages.add(_DIGITS.sub("…", issue["event"] or ""), hash64(row["id"]))
