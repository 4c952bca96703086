"""What the report says in its own words, in English and Chinese.

Invariant: both catalogues have the same keys and take the same values, so that a page is complete
in either language. Values are numbers (written with thousands separators) or text; in English a
`|` parts the words for `n` = 1 from those for any other `n`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from job.report import chinese, english
from job.report.english import MONTHS

Language = Literal["zh", "en"]


class Words:
    """The words of one language: call it with a key and its values."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.tag = {"zh": "zh-CN", "en": "en"}[language]
        self._catalogue: Mapping[str, str] = {"zh": chinese.WORDS, "en": english.WORDS}[language]

    def __call__(self, key: str, **values: object) -> str:
        words = self._catalogue[key]
        if "|" in words:
            one, many = words.split("|")
            words = one if values["n"] == 1 else many
        return words.format_map({name: _shown(value) for name, value in values.items()})

    def list(self, parts: list[str]) -> str:
        """Parts of one sentence in a row."""
        return ("，" if self.language == "zh" else ", ").join(parts)

    def labelled(self, label: str, text: str) -> str:
        """`text` after what it is about."""
        return f"{label}：{text}" if self.language == "zh" else f"{label}: {text}"

    def day(self, time: datetime) -> str:
        """A date in full: 2 March 2026, 2026年3月2日."""
        if self.language == "zh":
            return f"{time.year}年{time.month}月{time.day}日"
        return f"{time.day} {MONTHS[time.month - 1]} {time.year}"

    def short_day(self, time: datetime) -> str:
        """A date without its year: 2 Mar, 3月2日."""
        if self.language == "zh":
            return f"{time.month}月{time.day}日"
        return f"{time.day} {MONTHS[time.month - 1][:3]}"

    def moment(self, time: datetime, with_day: bool) -> str:
        """A time of the day, after its date where the reader cannot know it."""
        clock = f"{time:%H:%M}"
        return f"{self.short_day(time)} {clock}" if with_day else clock

    def span(self, first: datetime, last: datetime, with_day: bool) -> str:
        """From `first` to `last`, as short as it can be said."""
        if first.date() != last.date():
            return f"{self.moment(first, True)} – {self.moment(last, True)}"
        start = self.moment(first, with_day)
        end = self.moment(last, False)
        return start if end == self.moment(first, False) else f"{start}–{end}"

    def period(self, first: datetime, last: datetime) -> str:
        """The days that the data spans, with the times at both ends."""
        if first.date() == last.date():
            return f"{self.day(first)} {first:%H:%M}–{last:%H:%M}"
        return f"{self.day(first)} {first:%H:%M} – {self.day(last)} {last:%H:%M}"


def share(value: float) -> str:
    """A share between 0 and 1 as a percentage with at most one decimal."""
    if 0 < value < 0.001:
        return "<0.1%"
    return f"{value * 100:.1f}".removesuffix(".0") + "%"


def _shown(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return str(value)
