"""Records that say two things which cannot both be so, by rule. Pure.

Three rules: the best rating with a grave problem, or the worst with praise; an error in which
nothing is wrong, or a grave problem at a level for information; an assistant's promise ("I have
issued the refund") in a session whose operation log says that the like failed.

Invariant: as of all totals, merging is associative, and the parts of a whole merge to the whole.
Every case is counted; of each rule a bounded number is kept as evidence. The scale of ratings is
taken from all ratings of a source, never from a single one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from job.reduce.pieces import TEXT_CHARS, Best, make_piece, wording, worst_key
from job.reduce.promises import promise_in, topics_of
from job.reduce.tallies import Distinct, hash64

RATING, LEVEL, PROMISE = "rating_against_text", "level_against_outcome", "promise_against_log"
EVIDENCE = 5
"""Pieces shown for a rule."""
GRAVE = ("high", "critical")
ALARMS = ("error", "critical")
_QUIET = ("info", "debug")
_TOPICS = 0xFF
_TOPIC_BITS = np.uint64(8)
"""The last byte of what is remembered of a session holds its topics, the others its hash."""
_TOPS = (5.0, 10.0, 100.0)
"""The best ratings of the scales in use; a source is rated on the least that holds all of its."""

Case = tuple[str, str, float]
"""Rule, source and, of ratings, the scale on which it is one (negative: this or a longer one, for a
rating at the lower end); of levels "" and 0."""


@dataclass(slots=True)
class Cases:
    """The records of one rule: how many, and the gravest, no two with the same wording."""

    records: int = 0
    best: Best = field(default_factory=lambda: Best(EVIDENCE))


@dataclass(slots=True)
class Contradictions:
    """What may contradict itself in a run, or in any part of it.

    `highest` is the highest rating by source. `promised` and `failed` hold sessions in which
    something was promised or an operation failed, with what it was about (`job.reduce.promises`).
    """

    cases: dict[Case, Cases] = field(default_factory=dict)
    highest: dict[str, float] = field(default_factory=dict)
    promised: Distinct = field(default_factory=Distinct)
    failed: Distinct = field(default_factory=Distinct)

    def take(self, row: Mapping[str, Any], severity: str, issue: Mapping[str, Any]) -> None:
        """Look at a row (time in microseconds) with an outcome, its worst severity and issue."""
        if case := _by_rating(row, severity) or _by_level(row, severity):
            quote = issue.get("quote")
            words = quote or row["text"]
            found = self.cases.setdefault(case, Cases())
            found.records += 1
            key = worst_key(severity, row["time"], row["id"])
            if found.best.wants(key):
                piece = make_piece(row, issue, quote, severity)
                found.best.offer(key, wording(words[:TEXT_CHARS]), piece)
        if row["session"] and row["kind"] == "operation" and row["outcome"] == "problem":
            self.failed.add(remembered(row["session"], topics_of(row["text"])))

    def take_conversation(self, session: str, text: str) -> None:
        """Look for a promise in a conversation."""
        if promise := promise_in(text):
            self.promised.add(remembered(session, promise.topics))

    def take_rating(self, source: str, rating: float) -> None:
        """Note a rating that occurs in `source`."""
        self.highest[source] = max(rating, self.highest.get(source, rating))

    def absorb(self, other: Contradictions) -> None:
        """Add what `other` found."""
        for case, found in other.cases.items():
            mine = self.cases.setdefault(case, Cases())
            mine.records += found.records
            mine.best.absorb(found.best)
        for source, rating in other.highest.items():
            self.take_rating(source, rating)
        self.promised.absorb(other.promised)
        self.failed.absorb(other.failed)

    def trim(self) -> None:
        """Bring the evidence to its final size."""
        for found in self.cases.values():
            found.best.trim()

    def by_rule(self) -> dict[str, Cases]:
        """The cases of ratings and levels, each rating judged by the scale of its source."""
        rules: dict[str, Cases] = {}
        for (rule, source, top), found in sorted(self.cases.items()):
            of = scale(self.highest[source]) if rule == RATING else top
            if of is None or (top != of and not 0 < -top <= of):
                continue
            total = rules.setdefault(rule, Cases())
            total.records += found.records
            total.best.absorb(found.best)
        return rules

    def broken(self) -> dict[int, int]:
        """Sessions with a promise against which their log speaks: hash (of 56 bits) -> topics."""
        promised, failed = self.promised.values(), self.failed.values()
        both = np.intersect1d(promised >> _TOPIC_BITS, failed >> _TOPIC_BITS)
        topics = zip(_topics(promised, both), _topics(failed, both), strict=True)
        shared = [ours & theirs for ours, theirs in topics]
        return {s: t for s, t in zip(both.tolist(), shared, strict=True) if t}


def remembered(session: str, topics: int) -> int:
    """A session and what something in it was about, in 8 bytes."""
    return hash64(session) & ~_TOPICS | topics


def session_of(session: str) -> int:
    """A session as `Contradictions.broken` names it."""
    return hash64(session) >> int(_TOPIC_BITS)


def scale(highest: float) -> float | None:
    """The best rating where the highest given is `highest`; None where ratings tell only yes from
    no, or are on no scale known."""
    return next((top for top in _TOPS if 1 < highest <= top), None)


def _by_rating(row: Mapping[str, Any], severity: str) -> Case | None:
    rating = row["rating"]
    if rating is None:
        return None
    if row["outcome"] == "problem" and severity in GRAVE and rating in _TOPS:
        return RATING, row["source"], rating
    if row["outcome"] == "positive":
        top = next((top for top in _TOPS if rating <= top / 5), None)
        return (RATING, row["source"], -top) if top else None
    return None


def _by_level(row: Mapping[str, Any], severity: str) -> Case | None:
    if row["kind"] != "operation":
        return None
    alarm = row["level"] in ALARMS and row["outcome"] == "normal"
    quiet = row["level"] in _QUIET and row["outcome"] == "problem" and severity in GRAVE
    return (LEVEL, "", 0.0) if alarm or quiet else None


def _topics(found: NDArray[np.uint64], sessions: NDArray[np.uint64]) -> list[int]:
    """What of each of `sessions`, all of them in `found`, was about."""
    kept = found[np.isin(found >> _TOPIC_BITS, sessions)]
    _, at = np.unique(kept >> _TOPIC_BITS, return_index=True)
    topics: list[int] = (np.bitwise_or.reduceat(kept, at) & np.uint64(_TOPICS)).tolist()
    return topics
