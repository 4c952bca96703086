"""Ranges of what varied in operation logs that say the same: "lease renewal failed, 30 to 356 s".

Invariant: merging is associative and commutative, memory is bounded. Only measures have a range (a
number with a unit, or one that a word such as `size` or 耗时 names), never an id, a port, a date or
a code; and only numbers that stand between the same words are put together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from job.fold.template import template
from job.reduce.tallies import hash64

SLOTS = 64
"""Places of numbers that are kept of a theme: those with the smallest hashes, so that it does not
matter in what order they came."""
SHOWN = 3
"""Ranges of a theme that are shown."""
_MEASURES = 3
"""Numbers looked at in a record."""
_WITHIN = 300
"""Characters of a record in which they are looked for."""
_WORDS_BEFORE, _WORDS_AFTER = 5, 2
"""Words around a number that tell what it is."""
_CHARACTERS = 40
"""Of these words."""
_FAR = 0.01
"""Of the unit of the most: where the least is less than this of it, its own unit tells more."""

_SECONDS = {
    "ns": 1e-9, "µs": 1e-6, "us": 1e-6, "微秒": 1e-6, "microseconds": 1e-6,
    "ms": 1e-3, "msec": 1e-3, "msecs": 1e-3, "millis": 1e-3, "毫秒": 1e-3, "milliseconds": 1e-3,
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "秒": 1.0,
    "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0, "分钟": 60.0,
    "h": 3600.0, "hr": 3600.0, "hrs": 3600.0, "hour": 3600.0, "hours": 3600.0, "小时": 3600.0,
    "day": 86400.0, "days": 86400.0, "天": 86400.0,
}  # fmt: skip
_BYTES = {
    "B": 1, "byte": 1, "bytes": 1, "字节": 1,
    "KB": 2**10, "kB": 2**10, "KiB": 2**10, "MB": 2**20, "MiB": 2**20,
    "GB": 2**30, "GiB": 2**30, "TB": 2**40, "TiB": 2**40,
}  # fmt: skip
_COUNTED = (
    *("%", "retry", "retries", "attempt", "attempts", "time", "times", "row", "rows", "record"),
    *("records", "item", "items", "message", "messages", "connections", "requests", "files"),
    *("entries", "tasks", "blocks", "pages", "次", "条", "个", "行", "件", "笔"),
)
_UNITS: dict[str, tuple[str, float]] = {
    **{unit: ("time", factor) for unit, factor in _SECONDS.items()},
    **{unit: ("size", factor) for unit, factor in _BYTES.items()},
    **{unit: (unit.removesuffix("s"), 1.0) for unit in _COUNTED},
}
"""What a unit measures, and how many seconds or bytes it stands for."""
_UNIT = "|".join(re.escape(unit) for unit in sorted(_UNITS, key=len, reverse=True))
_NAMED = re.compile(
    r"(?:took|elapsed|duration|latency|lag|delay|timeout|waited|cost|size|len(?:gth)?|total|used|free"
    r"|usage|depth|backlog|count|retries|attempts|pending|load|memory|score|耗时|用时|大小|长度|数量"
    r"|次数|延迟|积压|使用率|占用)[\"']?\s?[=:：]?\s?\Z",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.:/#@+-])-?(?:[0-9]{1,3}(?:,[0-9]{3}){1,4}|[0-9]{1,15})(?:\.[0-9]{1,6})?"
    rf"(?![0-9])(?:\s?(?P<unit>{_UNIT})(?![A-Za-z_/]))?(?![A-Za-z0-9_]|[.:/,-][0-9])"
)
_PLACEHOLDER = re.compile(r"(?:<[a-z_*]{1,33}>\S?)+")
_CLAUSE = re.compile(r".*(?:[;。；!！?？\n]|[.] )", re.DOTALL)
_NEXT_CLAUSE = re.compile(r"[;。；!！?？\n,，.<…]")


class Slot(NamedTuple):
    """A place of a number: the words before and after it, and what it measures (`time`, `size`,
    what was counted, "" where no unit says it)."""

    before: str
    after: str
    measures: str


@dataclass(slots=True)
class Range:
    """The least and the most, each in seconds, bytes or what was counted, with its unit as it was
    written, and the records they come from."""

    least: tuple[float, str]
    most: tuple[float, str]
    records: int = 1

    def absorb(self, other: Range) -> None:
        """Add what `other` holds."""
        self.least = min(self.least, other.least)
        self.most = max(self.most, other.most)
        self.records += other.records


@dataclass(slots=True)
class Varied:
    """The ranges of one theme."""

    ranges: dict[Slot, Range] = field(default_factory=dict)

    def add(self, text: str) -> None:
        """Count one operation record."""
        for slot, found in measures(text):
            self._put(slot, found)

    def absorb(self, other: Varied) -> None:
        """Add what `other` counted."""
        for slot, found in other.ranges.items():
            self._put(slot, Range(found.least, found.most, found.records))

    def rows(self) -> list[dict[str, Any]]:
        """What to show, most records first: `label_before`, `label_after`, `min`, `max`, `unit`
        (as it was written with the most, or with the least; None where none was)."""
        ordered = sorted(self.ranges.items(), key=lambda item: (-item[1].records, item[0]))
        rows = [_row(slot, found) for slot, found in ordered]
        return [row for row in rows if row["min"] < row["max"]][:SHOWN]

    def _put(self, slot: Slot, found: Range) -> None:
        if slot in self.ranges:
            self.ranges[slot].absorb(found)
            return
        self.ranges[slot] = found
        if len(self.ranges) > SLOTS:
            del self.ranges[max(self.ranges, key=lambda slot: hash64("\0".join(slot)))]


def measures(text: str) -> list[tuple[Slot, Range]]:
    """The numbers of an operation record that measure something, each with its place; of two at
    the same place the first."""
    found: dict[Slot, Range] = {}
    for match in _NUMBER.finditer(text[: 2 * _WITHIN]):
        start = match.start()
        if start > _WITHIN or len(found) == _MEASURES:
            break
        unit = match["unit"] or ""
        if not unit and not _NAMED.search(text, max(0, start - 20), start):
            continue
        kind, factor = _UNITS.get(unit, ("", 1.0))
        number = match[0].removesuffix(unit).replace(",", "")
        value = (float(number) * factor, unit)
        slot = Slot(_before(text[:start]), _after(text[match.end() :]), kind)
        if slot.before or slot.after:
            found.setdefault(slot, Range(value, value))
    return list(found.items())


def _before(text: str) -> str:
    """The last words before a number, `…` for what varies among them."""
    words = _PLACEHOLDER.sub("…", _CLAUSE.sub("", template(text))).split()
    kept = " ".join(words[-_WORDS_BEFORE:])
    return kept if len(kept) <= _CHARACTERS else "…" + kept[-_CHARACTERS:]


def _after(text: str) -> str:
    """The first words after a number and its unit, as long as nothing varies."""
    if not text[:1].isspace() and text[:1].isascii():
        return ""
    clause = _NEXT_CLAUSE.split(template(text[: 2 * _CHARACTERS]), maxsplit=1)[0].split()
    if not clause or not clause[0].isascii():
        return ""
    words = clause[:_WORDS_AFTER]
    return " ".join(words) if all(word.isascii() and word.isalpha() for word in words) else ""


def _row(slot: Slot, found: Range) -> dict[str, Any]:
    (least, small), (most, unit) = found.least, found.most
    if 0 < least < _FAR * _factor(unit):
        unit = small
    return {
        "label_before": slot.before,
        "label_after": slot.after,
        "min": _shown(least / _factor(unit)),
        "max": _shown(most / _factor(unit)),
        "unit": unit or None,
    }


def _factor(unit: str) -> float:
    return _UNITS[unit][1] if unit else 1.0


def _shown(value: float) -> float:
    """Six digits are more than a range needs, and hide what dividing adds."""
    rounded = float(f"{value:.6g}") if abs(value) < 1e6 else round(value)
    return int(rounded) if rounded == int(rounded) else rounded
