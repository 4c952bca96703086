"""What became of each theme since earlier runs. Pure.

Invariant: an earlier theme is paired with at most one of this run's. What is said of a theme
follows from the records counted then and now; of several earlier runs their median counts, a run
without the theme as none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from statistics import median
from typing import Any, Literal

from job.config_file import EXTRACTIVE
from job.themes.ids import continue_ids
from job.themes.table import EarlierTheme

Status = Literal["new", "worse", "same", "better"]
STATUSES: tuple[Status, ...] = ("new", "worse", "same", "better")
Mode = Literal["run", "auto"]

SHARE = 0.3
RECORDS = 5
"""A theme is worse or better when its records change by more than both (DESIGN 6)."""


@dataclass(frozen=True, slots=True)
class PastTheme:
    """A theme of problem records in an earlier run, under the id that it has in this one.

    `days`: for how many days in a row it had been there, as far as that run knew, since `since`.
    """

    id: str
    title: str
    severity: str
    kind: str
    records: int
    days: int
    since: str | None


@dataclass(frozen=True, slots=True)
class PastRun:
    """An earlier run. `path` is relative to the folder of this run; `day` as in `day_of`."""

    path: str
    day: str | None
    records: int
    problems: int
    model: str | None
    themes: tuple[PastTheme, ...]


@dataclass(frozen=True, slots=True)
class Baseline:
    """The earlier runs to compare with, the latest first. `reason`: why nothing can be compared,
    None where it can; then `runs` are what stood in the way."""

    mode: Mode
    runs: tuple[PastRun, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a theme; `days` in a row it is there, this run's included, since `since`."""

    status: Status
    before: float
    now: int
    days: int
    since: str | None

    @property
    def ratio(self) -> float | None:
        """`now` by `before`."""
        return round(self.now / self.before, 2) if self.before else None


@dataclass(frozen=True, slots=True)
class Gone:
    """A theme that half of the earlier runs or more had and this one has not, as it last was."""

    theme: PastTheme
    before: float
    last_seen: str | None


def why_not_comparable(now: Mapping[str, Any], then: Mapping[str, Any]) -> str | None:
    """Why the counts of two runs (as in run.json) cannot be compared; None where they can."""
    if then["stopped"]:
        return "partial"
    for name in ("language", "model"):
        if now[name] != then[name]:
            return name
    # What the built-in analyst goes by are the rules of its version.
    told = "version" if now["model"] == EXTRACTIVE else "instructions"
    if now[told] != then[told]:
        return "instructions"
    if now["settings"].get("sample") != then["settings"].get("sample"):
        return "sample"
    return None


def pair(ours: Sequence[EarlierTheme], theirs: Sequence[EarlierTheme]) -> dict[str, str]:
    """The theme of `ours` that each of `theirs` is, where it is one: the one with the same id, else
    the one that continues it."""
    known = {theme.id for theme in ours}
    pairs = {theme.id: theme.id for theme in theirs if theme.id in known}
    rest = {theme.id: theme for theme in theirs if theme.id not in known}
    for space in {theme.space for theme in rest.values()}:
        left = [t for t in ours if t.id not in pairs and t.space == space]
        ids = continue_ids(left, [t for t in rest.values() if t.space == space])
        pairs |= {then: own for own, then in ids.items() if then in rest}
    return pairs


def under_one_id(
    ours: Sequence[EarlierTheme], runs: Sequence[tuple[PastRun, Sequence[EarlierTheme]]]
) -> tuple[PastRun, ...]:
    """The earlier runs (each with its table of themes, the latest first) with every theme under the
    id of this run, or, where this run lacks it, of the latest run that had it."""
    known = list(ours)
    renamed = []
    for run, table in runs:
        pairs = pair(known, table)
        known += [theme for theme in table if theme.id not in pairs]
        themes = (replace(theme, id=pairs.get(theme.id, theme.id)) for theme in run.themes)
        renamed.append(replace(run, themes=tuple(themes)))
    return tuple(renamed)


def changes(baseline: Baseline, now: Mapping[str, int], day: str | None) -> dict[str, Change]:
    """What became of the themes of this run, which have `now` records by id and are of `day`."""
    runs = _indexed(baseline)
    found = {}
    for id, records in now.items():
        then = [run.get(id) for run in runs]
        before = _median(theme.records if theme else 0 for theme in then)
        days, since = _in_a_row(baseline.runs, then, day)
        status = _status(before, records) if any(then) else "new"
        found[id] = Change(status, before, records, days, since)
    return found


def gone(baseline: Baseline, now: Iterable[str]) -> list[Gone]:
    """The themes that half of the earlier runs or more had (their median is not 0) and that are
    not among the ids `now`, most records first."""
    last: dict[str, tuple[PastTheme, str | None]] = {}
    for run in baseline.runs:
        for theme in run.themes:
            last.setdefault(theme.id, (theme, run.day))
    runs = _indexed(baseline)
    found = []
    for id in last.keys() - set(now):
        then = (run.get(id) for run in runs)
        before = _median(theme.records if theme else 0 for theme in then)
        if before:
            found.append(Gone(last[id][0], before, last[id][1]))
    return sorted(found, key=lambda g: (-g.before, g.theme.id))


def before(baseline: Baseline, name: Literal["records", "problems"]) -> float:
    """Records, or problem records, of the earlier runs."""
    return _median(getattr(run, name) for run in baseline.runs)


def _status(before: float, now: int) -> Status:
    change = now - before
    if abs(change) <= RECORDS or abs(change) <= SHARE * before:
        return "same"
    return "worse" if change > 0 else "better"


def _median(counts: Iterable[int]) -> float:
    """The median, as a whole number where it is one."""
    value = median(counts)
    return int(value) if value == int(value) else value


def _indexed(baseline: Baseline) -> list[dict[str, PastTheme]]:
    return [{theme.id: theme for theme in run.themes} for run in baseline.runs]


def _in_a_row(
    runs: Sequence[PastRun], then: Sequence[PastTheme | None], day: str | None
) -> tuple[int, str | None]:
    """For how many days in a row, `day` included, a theme is there, and since when. Two runs of one
    day are one; where the earliest run knew more, that counts on."""
    days, since = 1, day
    for run, theme in zip(runs, then, strict=True):
        if theme is None:
            break
        if run is runs[-1]:
            return days + theme.days - (run.day == since), theme.since or run.day
        days += run.day != since
        since = run.day
    return days, since


def day_of(named: str | None, days: Mapping[str, int], last: str | None) -> str | None:
    """The day that a run is of (YYYY-MM-DD): the one that was `named`, else the one of `days` with
    most problem records, else that of its `last` record (ISO 8601); None if no record has a time.
    """
    if named is not None:
        return date.fromisoformat(named[:10]).isoformat()
    if days:
        return max(days, key=lambda day: (days[day], day))
    return last[:10] if last else None
