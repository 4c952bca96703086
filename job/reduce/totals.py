"""What a run counted: totals that can be taken over any part of the results and merged.

Invariant: merging is associative and commutative, and the totals of a whole are the merged totals
of its parts, however it was split and in whatever order it came. Memory grows with the number of
themes, and by 8 bytes with each different user, service, host or promise, never with the number of
records: what is kept of the records themselves is bounded per theme, and chosen by keys that end
in the record's id, so that no choice depends on the order of arrival.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from job.fold.varied import Varied
from job.reduce.contradictions import Contradictions
from job.reduce.pieces import EVIDENCE, Best
from job.reduce.tallies import Distinct, Names, Timeline

QUARTER_US = 900_000_000
"""Times are counted by quarter of an hour (here in microseconds): the hours of every time zone in
use are whole numbers of quarters, so the zone can be chosen when the report is made."""


@dataclass(slots=True)
class ThemeTotals:
    """The counts of one theme. A record counts once, however many of its issues belong to it.

    `severities` count its issues. `quarters` count records with a time by quarter of an hour since
    1970, `timeline` by minutes; `first` and `last` are microseconds. `names` count by "user",
    "service", "host", and, where an entry of an operation log names neither service nor host,
    "source", and `distinct` how many different ones there are. `varied` are ranges of numbers in
    operation logs. `earliest`, `worst` (no two with the same wording) and `sample` (drawn evenly,
    by the hash of the id) are its evidence.
    """

    records: int = 0
    issues: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    severities: Counter[str] = field(default_factory=Counter)
    quarters: Counter[int] = field(default_factory=Counter)
    timeline: Timeline = field(default_factory=Timeline)
    names: dict[str, Names] = field(default_factory=dict)
    distinct: dict[str, Distinct] = field(default_factory=dict)
    varied: Varied = field(default_factory=Varied)
    first: int | None = None
    last: int | None = None
    earliest: Best = field(default_factory=lambda: Best(1))
    worst: Best = field(default_factory=lambda: Best(EVIDENCE))
    sample: Best = field(default_factory=lambda: Best(EVIDENCE))

    @property
    def users(self) -> int:
        """How many users have a record of it."""
        return self.different("user")

    def different(self, field: str) -> int:
        """How many different names of `field` there are."""
        return len(self.distinct[field]) if field in self.distinct else 0

    def absorb(self, other: ThemeTotals) -> None:
        """Add what `other` counted."""
        self.records += other.records
        self.issues += other.issues
        self.kinds.update(other.kinds)
        self.severities.update(other.severities)
        self.quarters.update(other.quarters)
        self.timeline.absorb(other.timeline)
        for name, counts in other.names.items():
            self.names.setdefault(name, Names()).absorb(counts)
        for name, hashes in other.distinct.items():
            self.distinct.setdefault(name, Distinct()).absorb(hashes)
        self.varied.absorb(other.varied)
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
    records, `praise` those of what users say well of, both with "" for records without a theme.
    `contradictions` are what `contradictions.py` found. `misquoted` counts quotes that their text
    does not hold; they are shown nowhere.
    """

    records: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    timed: int = 0
    first: int | None = None
    last: int | None = None
    problems: Counter[tuple[int | None, str]] = field(default_factory=Counter)
    users: Distinct = field(default_factory=Distinct)
    themes: dict[str, ThemeTotals] = field(default_factory=dict)
    praise: dict[str, ThemeTotals] = field(default_factory=dict)
    contradictions: Contradictions = field(default_factory=Contradictions)
    misquoted: int = 0

    def absorb(self, other: Totals) -> None:
        """Add what `other` counted, in place."""
        self.records.update(other.records)
        self.flags.update(other.flags)
        self.timed += other.timed
        self.first, self.last = widen(self.first, self.last, other.first, other.last)
        self.problems.update(other.problems)
        self.users.absorb(other.users)
        self.contradictions.absorb(other.contradictions)
        self.misquoted += other.misquoted
        for mine, others in ((self.themes, other.themes), (self.praise, other.praise)):
            for theme, totals in others.items():
                mine.setdefault(theme, ThemeTotals()).absorb(totals)

    def trim(self) -> None:
        """Bring the evidence of every theme to its final size."""
        for totals in (*self.themes.values(), *self.praise.values()):
            totals.trim()
        self.contradictions.trim()

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
