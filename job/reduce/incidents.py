"""Themes that broke out together at the same place: one likely incident. Pure.

A theme breaks out when most of its records fall into a short part of the run's time. Themes that
did so within minutes of one another, while the other was still going on, on the same host or
service (or in the same log, where that names neither), are one incident. That they have one cause
is likely, not certain, and is said so.

Invariant: an incident has two themes or more, a theme is in at most one, and the result follows
from the totals alone.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from job.reduce.tallies import MINUTE_US, Timeline
from job.reduce.totals import ThemeTotals

MOST = 0.8
"""Share of a theme's timed records that its outbreak holds: some of the same may come at any time.
"""
LONGEST = 120
"""Minutes that an outbreak lasts at most: what goes on longer is a state."""
PART = 2 / 3
"""Of the run's time at most: in a log that holds nothing but the failure, nothing breaks out."""
APART = 10
"""Minutes between the beginnings at most."""
SMALLEST = 5
"""Records of an outbreak: fewer fall together by chance."""
LEAST_PART = 1 / 40
"""A theme with a smaller part of the records of the largest is not named beside it."""
AT_PLACE = 0.2
"""Share of a theme's records that make a host or service one of its places."""
PLACES = 5
"""Hosts and services that are named of an incident."""
FIELDS = ("service", "host", "source")


@dataclass(frozen=True, slots=True)
class Outbreak:
    """When a theme broke out: `first` and `last` in microseconds, `records` between them, and its
    places by (field, name) with the records they have."""

    theme: str
    first: int
    last: int
    records: int
    places: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Incident:
    """Outbreaks that belong together, most records first; `places` by field, those of most
    outbreaks first; `began_within`: minutes between the first and the last beginning, rounded
    up."""

    id: str
    outbreaks: tuple[Outbreak, ...]
    first: int
    last: int
    began_within: int
    places: Mapping[str, tuple[str, ...]]

    @property
    def themes(self) -> tuple[str, ...]:
        """Ids of its themes."""
        return tuple(outbreak.theme for outbreak in self.outbreaks)


def find_incidents(
    themes: Mapping[str, ThemeTotals], first: int | None, last: int | None
) -> list[Incident]:
    """The incidents among `themes` of a run from `first` to `last` (microseconds), most records
    first."""
    if first is None or last is None:
        return []
    minutes = (last - first) // MINUTE_US + 1
    found = [outbreak(id, theme, minutes) for id, theme in themes.items() if id]
    outbreaks = sorted(filter(None, found), key=lambda o: (-o.records, o.theme))
    incidents = (_incident(group) for group in _groups(outbreaks))
    return sorted(
        filter(None, incidents), key=lambda i: (-sum(o.records for o in i.outbreaks), i.id)
    )


def outbreak(id: str, theme: ThemeTotals, minutes: int) -> Outbreak | None:
    """When and where `theme` broke out in a run that spans `minutes`; None if it did not."""
    cells = sorted(theme.timeline.cells.items())
    width = theme.timeline.minutes()
    if sum(n for _, n in cells) < SMALLEST:
        return None
    begin, end = _densest(cells)
    length = (cells[end][0] - cells[begin][0] + 1) * width
    if length > min(LONGEST, PART * minutes):
        return None
    # The outbreak goes on while its records follow one another about as they did.
    pause = max(1, 2 * (cells[end][0] - cells[begin][0]) // (end - begin or 1))
    while begin > 0 and cells[begin][0] - cells[begin - 1][0] <= pause:
        begin -= 1
    while end + 1 < len(cells) and cells[end + 1][0] - cells[end][0] <= pause:
        end += 1
    start, stop = _edges(theme.timeline, cells[begin][0], cells[end][0])
    return Outbreak(
        theme=id,
        first=max(start, theme.first or start),
        last=min(stop, theme.last or stop),
        records=sum(n for _, n in cells[begin : end + 1]),
        places=_places(theme),
    )


def _densest(cells: list[tuple[int, int]]) -> tuple[int, int]:
    """Indices of the first and last cell of the shortest span that holds most records."""
    needed = MOST * sum(n for _, n in cells)
    best = (0, len(cells) - 1)
    held, begin = 0, 0
    for end, (cell, n) in enumerate(cells):
        held += n
        while held - cells[begin][1] >= needed:
            held -= cells[begin][1]
            begin += 1
        if held >= needed and cell - cells[begin][0] < cells[best[1]][0] - cells[best[0]][0]:
            best = begin, end
    return best


def _edges(timeline: Timeline, first: int, last: int) -> tuple[int, int]:
    """From the beginning of the cell `first` to the end of the cell `last`, in microseconds."""
    width = timeline.minutes() * MINUTE_US
    return first * width, (last + 1) * width - 1


def _places(theme: ThemeTotals) -> dict[tuple[str, str], int]:
    return {
        (field, name): n << names.thinned
        for field, names in theme.names.items()
        if field in FIELDS
        for name, n in names.top(PLACES)
        if n << names.thinned >= AT_PLACE * theme.records
    }


def together(a: Outbreak, b: Outbreak) -> bool:
    """Whether two outbreaks are of one incident: in time and in place."""
    shared = min(a.last, b.last) - max(a.first, b.first)
    shorter = min(a.last - a.first, b.last - b.first)
    return (
        abs(a.first - b.first) <= APART * MINUTE_US
        and shared >= shorter / 2
        and not a.places.keys().isdisjoint(b.places)
    )


def _groups(outbreaks: list[Outbreak]) -> Iterable[list[Outbreak]]:
    """The outbreaks that hang together, in their order."""
    parent = list(range(len(outbreaks)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = i = parent[parent[i]]
        return i

    by_first = sorted(range(len(outbreaks)), key=lambda i: outbreaks[i].first)
    for place in range(len(by_first)):
        for i in by_first[place + 1 :]:
            j = by_first[place]
            if outbreaks[i].first - outbreaks[j].first > APART * MINUTE_US:
                break
            if together(outbreaks[i], outbreaks[j]):
                parent[root(i)] = root(j)
    groups: dict[int, list[Outbreak]] = {}
    for i, member in enumerate(outbreaks):
        groups.setdefault(root(i), []).append(member)
    return groups.values()


def _incident(group: list[Outbreak]) -> Incident | None:
    members = [o for o in group if o.records >= LEAST_PART * group[0].records]
    if len(members) < 2:
        return None
    first = min(o.first for o in members)
    began = max(o.first for o in members) - first
    digest = hashlib.sha256("\n".join(sorted(o.theme for o in members)).encode()).hexdigest()
    return Incident(
        id=f"i-{digest[:10]}",
        outbreaks=tuple(members),
        first=first,
        last=max(o.last for o in members),
        began_within=max(1, -(-began // MINUTE_US)),
        places={field: _named(members, field) for field in FIELDS},
    )


def _named(members: list[Outbreak], field: str) -> tuple[str, ...]:
    """The places of a kind, those that most outbreaks share and have most records first."""
    shared: Counter[str] = Counter()
    records: Counter[str] = Counter()
    for member in members:
        for (kind, name), n in member.places.items():
            if kind == field:
                shared[name] += 1
                records[name] += n
    order = sorted(shared, key=lambda name: (-shared[name], -records[name], name))
    return tuple(order[:PLACES])
