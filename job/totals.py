"""What a run counted: totals that can be taken over any part of the results and merged.

Invariant: merging is associative and commutative, and the totals of a whole are the merged totals
of its parts, however it was split and in whatever order it came. Memory grows with the number of
themes and of users, never with the number of records: what is kept of the records themselves is
bounded per theme, and chosen by keys that end in the record's id, so that no choice depends on
the order of arrival.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from job.records import SEVERITIES

EVIDENCE = 20
"""Pieces of evidence kept and shown for a theme; every one is in `evidence.csv`."""
QUARTER_US = 900_000_000
"""Times are counted by quarter of an hour (here in microseconds): the hours of every time zone in
use are whole numbers of quarters, so the zone can be chosen when the report is made."""

Key = tuple[int, int, str]
"""What pieces are chosen by, smallest first; ends in the record's id."""

_DIGITS = re.compile(r"\d+")
_NO_TIME = 1 << 63
_RANK: dict[str, int] = {severity: rank for rank, severity in enumerate(SEVERITIES)}


@dataclass(frozen=True, slots=True)
class Piece:
    """One record as evidence for one theme.

    `time` is in microseconds since 1970 UTC. `text` is a part of the record's text that holds the
    quote, `offset` characters after its beginning; the whole has `length` characters.
    """

    record: str
    source: str
    position: int
    time: int | None
    kind: str
    lang: str
    service: str | None
    user: str | None
    severity: str
    event: str
    cause: str | None
    basis: str
    quote: str | None
    text: str
    offset: int
    length: int


def wording(words: str) -> str:
    """`words` without their numbers: what makes two pieces say the same."""
    return _DIGITS.sub("0", words)


def time_key(time: int | None) -> int:
    """`time` (microseconds) as a part of a Key: unknown times come last."""
    return _NO_TIME if time is None else time


def worst_key(severity: str, time: int | None, record: str) -> Key:
    """Orders pieces by severity, then time: the worst, and of equals the earliest, first."""
    return -_RANK[severity], time_key(time), record


@dataclass(slots=True)
class Best:
    """The `size` pieces with the smallest keys, of each group only its smallest.

    Until `trim` up to twice as many are kept, so that sorting is rare.
    """

    size: int
    kept: dict[str, tuple[Key, Piece]] = field(default_factory=dict)
    _bound: Key | None = field(default=None, compare=False)

    def wants(self, key: Key) -> bool:
        """Whether a piece with this key can still be one of them, by what is known so far."""
        return self._bound is None or key < self._bound

    def offer(self, key: Key, group: str, piece: Piece) -> None:
        """Keep `piece` if it may be one of them."""
        known = self.kept.get(group)
        if not self.wants(key) or (known is not None and known[0] <= key):
            return
        self.kept[group] = key, piece
        if len(self.kept) >= 2 * self.size:
            self.trim()

    def trim(self) -> None:
        """Forget all but the best `size`."""
        if len(self.kept) > self.size:
            best = sorted(self.kept.items(), key=lambda item: item[1][0])[: self.size]
            self._bound = best[-1][1][0]
            self.kept = dict(best)

    def absorb(self, other: Best) -> None:
        """Add what `other` kept."""
        for group, (key, piece) in other.kept.items():
            self.offer(key, group, piece)
        self.trim()

    def pieces(self) -> list[Piece]:
        """What is kept, best first."""
        self.trim()
        return [piece for _, piece in sorted(self.kept.values(), key=lambda item: item[0])]


@dataclass(slots=True)
class ThemeTotals:
    """The counts of one theme. A record counts once, however many of its issues belong to it.

    `users` are 8-byte hashes of the users' names; `quarters` count records with a time by quarter
    of an hour since 1970; `first` and `last` are microseconds. `earliest`, `worst` (no two with
    the same wording) and `sample` (drawn evenly, by the hash of the id) are its evidence.
    """

    records: int = 0
    issues: int = 0
    users: set[int] = field(default_factory=set)
    kinds: Counter[str] = field(default_factory=Counter)
    quarters: Counter[int] = field(default_factory=Counter)
    first: int | None = None
    last: int | None = None
    earliest: Best = field(default_factory=lambda: Best(1))
    worst: Best = field(default_factory=lambda: Best(EVIDENCE))
    sample: Best = field(default_factory=lambda: Best(EVIDENCE))

    def absorb(self, other: ThemeTotals) -> None:
        """Add what `other` counted."""
        self.records += other.records
        self.issues += other.issues
        self.users |= other.users
        self.kinds.update(other.kinds)
        self.quarters.update(other.quarters)
        self.first, self.last = widen(self.first, self.last, other.first, other.last)
        self.earliest.absorb(other.earliest)
        self.worst.absorb(other.worst)
        self.sample.absorb(other.sample)

    def trim(self) -> None:
        """Bring the evidence to its final size."""
        for best in (self.earliest, self.worst, self.sample):
            best.trim()


@dataclass(slots=True)
class Totals:
    """The counts of a run, or of any part of it.

    `records` counts by (kind, via, outcome), outcome "" where there is none. `problems` counts
    problem records by (quarter of an hour, or None where the time is unknown, severity of the
    worst issue). `users` are the users with a problem. `themes` holds the themes of problem
    records, `praise` those of positive ones, both with "" for records without a theme.
    `misquoted` counts quotes that their text does not hold; they are shown nowhere.
    """

    records: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    timed: int = 0
    first: int | None = None
    last: int | None = None
    problems: Counter[tuple[int | None, str]] = field(default_factory=Counter)
    users: set[int] = field(default_factory=set)
    themes: dict[str, ThemeTotals] = field(default_factory=dict)
    praise: dict[str, ThemeTotals] = field(default_factory=dict)
    misquoted: int = 0

    def absorb(self, other: Totals) -> None:
        """Add what `other` counted, in place."""
        self.records.update(other.records)
        self.flags.update(other.flags)
        self.timed += other.timed
        self.first, self.last = widen(self.first, self.last, other.first, other.last)
        self.problems.update(other.problems)
        self.users |= other.users
        self.misquoted += other.misquoted
        for mine, others in ((self.themes, other.themes), (self.praise, other.praise)):
            for theme, totals in others.items():
                mine.setdefault(theme, ThemeTotals()).absorb(totals)

    def trim(self) -> None:
        """Bring the evidence of every theme to its final size."""
        for totals in (*self.themes.values(), *self.praise.values()):
            totals.trim()

    def count(
        self, kind: str | None = None, via: str | None = None, outcome: str | None = None
    ) -> int:
        """Records of this kind, via and outcome; None stands for any."""
        wanted = (kind, via, outcome)
        return sum(
            n
            for key, n in self.records.items()
            if all(want in (None, have) for want, have in zip(wanted, key, strict=True))
        )


def merge(a: Totals, b: Totals) -> Totals:
    """The totals of what `a` and `b` counted together; both stay as they are."""
    total = Totals()
    total.absorb(a)
    total.absorb(b)
    return total


def widen(
    first: int | None, last: int | None, other_first: int | None, other_last: int | None
) -> tuple[int | None, int | None]:
    """The span that holds both spans; a span of None is empty."""
    firsts = [time for time in (first, other_first) if time is not None]
    lasts = [time for time in (last, other_last) if time is not None]
    return min(firsts, default=None), max(lasts, default=None)
