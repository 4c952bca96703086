"""What the report says in its own words, in English and Chinese.

Invariant: both catalogues have the same keys and take the same values, so that a page is complete
in either language. Values are numbers (written with thousands separators) or text; in English a
`|` parts the words for `n` = 1 from those for any other `n`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Literal

from job.report import chinese, chinese_names, english, english_names
from job.report.english import MONTHS

Language = Literal["zh", "en"]
TAGS: Mapping[str, str] = {"zh": "zh-CN", "en": "en"}
"""What HTML calls the languages."""


class Words:
    """The words of one language: call it with a key and its values."""

    def __init__(self, language: Language, years: bool = False) -> None:
        """`years`: dates of moments have their year, since there are several."""
        self.language = language
        self._years = years
        self.tag = TAGS[language]
        self._catalogue: Mapping[str, str] = {"zh": chinese.WORDS, "en": english.WORDS}[language]
        self._names = {"zh": chinese_names.NAMES, "en": english_names.NAMES}[language]

    def __call__(self, key: str, **values: object) -> str:
        words = self._catalogue[key]
        if "|" in words:
            one, many = words.split("|")
            words = one if values["n"] == 1 else many
        return words.format_map({name: shown(value) for name, value in values.items()})

    def name(self, group: str, key: str) -> str:
        """What `key` of `group` (a flag, a reason, a station, ...) is called; `key` itself where
        the catalogue lacks it."""
        return self._names.get(f"{group}_{key}", key)

    def list(self, parts: list[str]) -> str:
        """Parts of one sentence in a row."""
        return ("，" if self.language == "zh" else ", ").join(parts)

    def enumerate(self, parts: Iterable[str]) -> str:
        """Things of one kind in a row."""
        return ("、" if self.language == "zh" else ", ").join(parts)

    def sentences(self, parts: Iterable[str]) -> str:
        """Whole sentences one after the other."""
        return ("" if self.language == "zh" else " ").join(parts)

    def bracketed(self, text: str) -> str:
        """`text` in brackets, after other words."""
        return f"（{text}）" if self.language == "zh" else f" ({text})"

    def labelled(self, label: str, text: str) -> str:
        """`text` after what it is about."""
        return f"{label}：{text}" if self.language == "zh" else f"{label}: {text}"

    def day(self, time: date) -> str:
        """A date in full: 2 March 2026, 2026年3月2日."""
        if self.language == "zh":
            return f"{time.year}年{time.month}月{time.day}日"
        return f"{time.day} {MONTHS[time.month - 1]} {time.year}"

    def short_day(self, time: date) -> str:
        """A date without its year: 2 Mar, 3月2日."""
        if self.language == "zh":
            return f"{time.month}月{time.day}日"
        return f"{time.day} {MONTHS[time.month - 1][:3]}"

    def moment(self, time: datetime, with_day: bool, seconds: bool = False) -> str:
        """A time of the day, after its date where the reader cannot know it."""
        clock = f"{time:%H:%M:%S}" if seconds else f"{time:%H:%M}"
        if not with_day:
            return clock
        return f"{self.day(time) if self._years else self.short_day(time)} {clock}"

    def stamp(self, time: datetime) -> str:
        """A date and time in full, without its zone."""
        return f"{self.day(time)} {time:%H:%M:%S}"

    def span(self, first: datetime, last: datetime, with_day: bool) -> str:
        """From `first` to `last`, as short as it can be said."""
        if first.date() != last.date():
            return self._between(self.moment(first, True), self.moment(last, True))
        start = self.moment(first, with_day)
        end = self.moment(last, False)
        return start if end == self.moment(first, False) else f"{start}–{end}"

    def iso_span(self, first: str | None, last: str | None, with_day: bool) -> str:
        """The span of two times as they stand in the report; "" where they are not known."""
        if first is None or last is None:
            return ""
        return self.span(datetime.fromisoformat(first), datetime.fromisoformat(last), with_day)

    def bar(self, start: datetime, unit: str, with_day: bool) -> str:
        """The time that a bar of the chart stands for."""
        if unit == "hour":
            return self.moment(start, with_day)
        if unit == "day":
            return self.short_day(start)
        if self.language == "zh":
            return f"{start.year}年{start.month}月" if unit == "month" else f"{start.year}年"
        return f"{start:%Y-%m}" if unit == "month" else f"{start:%Y}"

    def range(self, low: object, high: object, unit: str | None) -> str:
        """From `low` to `high`, in `unit`."""
        between = f"{shown(low)}–{shown(high)}" if low != high else shown(low)
        return f"{between} {unit}" if unit else between

    def period(self, first: datetime, last: datetime) -> str:
        """The days that the data spans, with the times at both ends."""
        if first.date() == last.date():
            return f"{self.day(first)} {self.span(first, last, with_day=False)}"
        return self._between(f"{self.day(first)} {first:%H:%M}", f"{self.day(last)} {last:%H:%M}")

    def _between(self, start: str, end: str) -> str:
        return f"{start} 至 {end}" if self.language == "zh" else f"{start} – {end}"


def share(value: float) -> str:
    """A share between 0 and 1 as a percentage with at most one decimal."""
    if 0 < value < 0.001:
        return "<0.1%"
    return f"{value * 100:.1f}".removesuffix(".0") + "%"


def shown(value: object) -> str:
    """A number with thousands separators and at most one decimal (a median can have one); else
    the text itself."""
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}".removesuffix(".0")
    return str(value)
