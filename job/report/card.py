"""What the pages say of one theme, in which words.

Invariant: made from the theme alone; nothing is said twice: a summary or cause that only repeats
the title is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any

from job.report.chart import Chart, counts_in
from job.report.evidence import QUOTES
from job.report.words import TAGS, Words, share, shown
from job.text import language

CARDS = 60
"""Themes shown in full; with 20 pieces of evidence each they fill some 3 MB of a page."""
FIRST_CARDS = 6
COMMON = 3
"""Records that make a theme worth a card, beyond the first `FIRST_CARDS` themes."""
HEADING_CHARS = 90
"""A title that was cut is given by its summary where that is at most this long."""
SAME_SHARE = 0.8
"""Two sentences of which one holds the other, and is this much of it, say the same."""
SPARK_BARS = 4
"""Fewer bars than this are no course of anything."""
_BESIDE_WORDS = re.compile(r"[\W_]+")
_PLAIN_WORD = re.compile(r"[a-z]+[ ,]")
"""A word to begin with, not a name such as order-api or a path."""
_HOLE = re.compile(r"[ \t]+(?=[:,.;!?，。；：！？、](?:\s|$))")


class Card:
    """One theme as the pages show it. `with_day`: its times need their dates."""

    def __init__(
        self, theme: Mapping[str, Any], words: Words, chart: Chart | None, with_day: bool
    ) -> None:
        self.theme, self._words, self._chart = theme, words, chart
        self._with_day = with_day
        self.id: str = theme["id"]
        self.severity: str = theme["severity"]
        self.records: int = theme["records"]
        self.muted: bool = theme["muted_until"] is not None

    @cached_property
    def heading(self) -> str:
        """The title; where it was cut, the summary if that is short enough."""
        title, summary = tidy(self.theme["title"]), tidy(self.theme["summary"] or "")
        whole = summary.rstrip("。. ")
        fits = title.endswith("…") and whole.startswith(title[:-1].rstrip())
        return whole if fits and len(whole) <= HEADING_CHARS else title

    @cached_property
    def summary(self) -> str | None:
        """What happened, where it is more than the heading."""
        summary = tidy(self.theme["summary"] or "")
        return summary if summary and not same_words(summary, self.heading) else None

    @cached_property
    def cause(self) -> str | None:
        """The cause; None where the records do not say more than what happened."""
        cause = tidy(self.theme["cause"] or "")
        said = (self.heading, self.theme["title"], self.theme["summary"] or "")
        return cause if cause and not any(same_words(cause, other) for other in said) else None

    @property
    def cause_label(self) -> str:
        """Whether the cause stands in the records."""
        stated = self.cause is None or self.theme["basis"] == "stated"
        return self._words("cause_stated" if stated and self.cause else "cause_inferred")

    def badges(self) -> list[tuple[str, str]]:
        """(Class, words) of its severity and of what is known of it."""
        theme, words = self.theme, self._words
        found = [(self.severity, words(self.severity))]
        if theme["returned"]:
            found.append(("returned", words("returned")))
        if theme["status"] in ("new", "worse", "better"):
            found.append((theme["status"], words(f"status_{theme['status']}")))
        if self.muted:
            found.append(("muted", words("muted_until", day=self._day(theme["muted_until"]))))
        return found

    def change(self) -> str | None:
        """How many records it had before and has now; None where that is not comparable."""
        change = self.theme["change"]
        if change is None or self.theme["status"] == "new" or change["before"] == change["now"]:
            return None
        return self._words("change", before=shown(change["before"]), n=change["now"])

    def facts(self) -> list[str]:
        """How often it was reported, by how many users, when, and since which day."""
        theme, words = self.theme, self._words
        parts = [words("records", n=theme["records"])]
        if theme["users"]:
            parts.append(words("users", n=theme["users"]))
        if span := self.span():
            parts.append(span)
        seen = theme["days_seen"]
        if seen is not None and seen["days"] > 1:
            parts.append(words("days_seen", n=seen["days"], since=self._day(seen["since"])))
        if theme["owner"]:
            parts.append(words("owner", name=theme["owner"]))
        return parts

    def span(self) -> str:
        """From its first to its last record; nothing where they have no times."""
        return self._words.iso_span(self.theme["first"], self.theme["last"], self._with_day)

    def of_kind(self) -> list[str]:
        """Its records among all records of their kind."""
        return [
            self._words(f"of_{kind}", count=part["records"], n=part["of"])
            for kind, part in sorted(
                self.theme["of_kind"].items(), key=lambda item: -item[1]["share"]
            )
        ]

    def share(self) -> str:
        """Its part of all problem records."""
        return self._words("share_of_problems", share=share(self.theme["share"]))

    def affected(self) -> list[tuple[str, list[tuple[str, int]], int]]:
        """(What, the most affected of it with their records, how many more there are)."""
        theme = self.theme
        users = [user for user in theme["top_users"] if user["records"] > 1]
        parts = (
            ("services", theme["services"], theme["services_total"]),
            ("hosts", theme["hosts"], theme["hosts_total"]),
            ("most_affected", users, theme["users"]),
        )
        return [
            (
                self._words(label),
                [(part["name"], part["records"]) for part in named],
                max(0, total - len(named)),
            )
            for label, named, total in parts
            if named
        ]

    def varied(self) -> list[str]:
        """The ranges of what differs between records that say the same otherwise."""
        return [
            " ".join(
                filter(
                    None,
                    (
                        part["label_before"],
                        self._words.range(part["min"], part["max"], part["unit"]),
                        part["label_after"],
                    ),
                )
            )
            for part in self.theme["varied"]
        ]

    def quotes(self, limit: int = QUOTES) -> list[Mapping[str, Any]]:
        """The pieces to quote: no two say the same."""
        return quotes(self.theme, limit)

    def spark(self) -> tuple[tuple[int, ...], str] | None:
        """Its records by the bars of the chart, and what they show in words."""
        if self._chart is None or len(self._chart.bars) < SPARK_BARS or not self.theme["by_hour"]:
            return None
        counts = counts_in(self._chart, self.theme["by_hour"])
        peak = self._chart.bars[counts.index(max(counts))]
        at = self._words.bar(peak.start, self._chart.unit, self._with_day)
        unit = self._words(f"spark_{self._chart.unit}", peak=at, n=max(counts))
        return tuple(counts), unit

    def _day(self, iso: str) -> str:
        return self._words.short_day(datetime.fromisoformat(iso))


def in_full(themes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those of the themes of a report that have a card: of the ones that are not muted the first,
    the frequent and those that need action."""
    heard = (theme for theme in themes if theme["muted_until"] is None)
    weighty = (
        theme
        for rank, theme in enumerate(heard)
        if theme["needs_action"] or theme["records"] >= COMMON or rank < FIRST_CARDS
    )
    return list(islice(weighty, CARDS))


def quotes(theme: Mapping[str, Any], limit: int = QUOTES) -> list[Mapping[str, Any]]:
    """At most `limit` pieces of evidence of which no two say the same."""
    return [piece for piece in theme["evidence"][:limit] if piece["role"] != "same"]


def tidy(text: str) -> str:
    """`text` as a sentence begins, on one line, without the gaps that ids and numbers left."""
    line = _HOLE.sub("", " ".join(text.split()))
    return line[:1].upper() + line[1:] if _PLAIN_WORD.match(line) else line


def same_words(one: str, other: str) -> bool:
    """Whether two sentences say the same but for a few words at an end."""
    short, long = sorted((_BESIDE_WORDS.sub("", text).casefold() for text in (one, other)), key=len)
    return bool(short) and short in long and len(short) >= SAME_SHARE * len(long)


def language_of(text: str) -> str:
    """The tag of the language that `text` is written in, for its fonts and its reader."""
    return TAGS.get(language(text), "")
