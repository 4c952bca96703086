"""What both pages show of a report, in what order and in what words.

Invariant: made from the report alone; every theme is one of `cards`, of `small`, of the
`small_rest` that are only counted, or of the `muted`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

from job.records import SEVERITIES
from job.report.account import Account
from job.report.card import Card, in_full, language_of
from job.report.changes import Changes
from job.report.chart import Bar, chart
from job.report.headline import detail, notices, trust
from job.report.words import Words

MOSTLY = 2 / 3
"""Of a theme's records, from which share on it is said to be seen mostly in one kind of them."""
SEVERAL = "several"
"""The section of themes that are seen mostly in no kind."""
ROWS = 200
"""Of small themes, of sources and of kinds of praise, the most that are listed."""


class View:
    """A report as its pages show it.

    `cards` holds themes by the kind that MOSTLY their records are of, or under SEVERAL; the kind of
    the worst theme first.
    """

    def __init__(self, report: Mapping[str, Any]) -> None:
        self.report = report
        first, last = report["period"]["first"], report["period"]["last"]
        years = first is not None and first[:4] != last[:4]
        self.words = Words(report["method"]["language"], years)
        self.account = Account(report, self.words)
        self.chart = chart(report["period"])
        self.with_day = first is not None and first[:10] != last[:10]
        themes = [Card(t, self.words, self.chart, self.with_day) for t in report["themes"]]
        self.by_id = {card.id: card for card in themes}
        self.muted = [card for card in themes if card.muted]
        self.cards: dict[str, list[Card]] = {}
        small: list[Card] = []
        full = {theme["id"] for theme in in_full(report["themes"])}
        for card in (card for card in themes if not card.muted):
            if card.id in full:
                self.cards.setdefault(_section(card.theme["by_kind"]), []).append(card)
            else:
                small.append(card)
        self.small, self.small_rest = small[:ROWS], max(0, len(small) - ROWS)
        shown = chain(*self.cards.values(), self.small, self.muted)
        self.anchors = {card.id for card in shown}
        self.changes = Changes(report, self.words, themes)

    def period(self) -> str:
        """The days and times that the data spans, and their zone."""
        first, last = self.report["period"]["first"], self.report["period"]["last"]
        if first is None:
            return self.words("no_times")
        span = self.words.period(datetime.fromisoformat(first), datetime.fromisoformat(last))
        return f"{span} · {self.report['period']['timezone']}"

    def notices(self) -> list[tuple[str, str]]:
        """(Name, sentence) of what must be known before anything is believed."""
        return notices(self.report, self.words) + self.changes.notices()

    def detail(self) -> str:
        """How much stands behind the headline."""
        return detail(self.report, self.words)

    def trust(self) -> str:
        """One line on what the report rests on."""
        return trust(self.report, self.words)

    def headline(self) -> tuple[str, str]:
        """What needs to be done and how bad it is: a line may break between the two."""
        text: str = self.report["headline"]
        for colon in ("：", ": "):
            if colon in text:
                claim, _, counts = text.partition(colon)
                return claim + colon, counts
        return text, ""

    def kind_heading(self, kind: str) -> str:
        """Where the themes of a section were seen; "mostly" where other kinds report them too."""
        if kind == SEVERAL:
            return self.words("seen_in_several")
        mixed = any(len(card.theme["by_kind"]) > 1 for card in self.cards[kind])
        return self.words(f"mostly_{kind}" if mixed else f"only_{kind}")

    def action(self, action: Mapping[str, Any]) -> tuple[str, str]:
        """What to do, and the title of the theme it is for."""
        card = self.by_id[action["theme"]]
        return action["action"] or card.heading, card.heading

    def time(self, iso: str, seconds: bool = False) -> str:
        """A time as short as the period allows."""
        return self.words.moment(datetime.fromisoformat(iso), self.with_day, seconds)

    def where(self, piece: Mapping[str, Any], short: bool = False) -> str:
        """The place of a piece: source and line, or its byte where the line is not known."""
        source = PurePosixPath(piece["source"]).name if short else piece["source"]
        if piece["line"] is not None:
            return f"{source}:{piece['line']}"
        if piece.get("position") is None:
            return source
        return self.words("byte", source=source, n=piece["position"])

    def language_of(self, text: str) -> str:
        """The language of words that records or models wrote, as HTML names it."""
        return language_of(text)

    @cached_property
    def severities(self) -> dict[str, str]:
        """The severities that the chart holds, the least first, and how they are called."""
        rows = self.report["period"]["by_hour"]
        return {s: self.words(s) for s in SEVERITIES if any(row[s] for row in rows)}

    def total_of(self, severity: str) -> int:
        """Problem records of the chart with this severity."""
        return sum(row[severity] for row in self.report["period"]["by_hour"])

    def chart_title(self) -> str:
        """What the chart shows."""
        if self.chart is None:
            return ""
        return self.words(f"per_{self.chart.unit}" if self.drawn else "by_severity")

    @property
    def drawn(self) -> bool:
        """Whether the chart is drawn: a single bar says no more than its numbers."""
        return self.chart is not None and len(self.chart.bars) > 1

    def chart_summary(self) -> str:
        """What the chart shows, for somebody who cannot see it."""
        if self.chart is None:
            return ""
        total = sum(bar.records for bar in self.chart.bars)
        peak = self.chart.peak
        return self.words("chart_summary", n=total, peak=self.label(peak), most=peak.records)

    def tick(self, bar: Bar) -> str:
        """The label under a bar."""
        assert self.chart is not None  # noqa: S101  a bar is a bar of a chart
        return self.words.bar(bar.start, self.chart.unit, with_day=False)

    def label(self, bar: Bar) -> str:
        """The label of a bar where it stands alone."""
        assert self.chart is not None  # noqa: S101  a bar is a bar of a chart
        return self.words.bar(bar.start, self.chart.unit, self.with_day)

    def incidents(self) -> list[dict[str, Any]]:
        """Themes that broke out together, each incident with its `cards` and `span`."""
        return [
            {
                **incident,
                "cards": [self.by_id[id] for id in incident["themes"] if id in self.by_id],
                "span": self.words.iso_span(incident["first"], incident["last"], self.with_day),
            }
            for incident in self.report["incidents"]
        ]


def _section(by_kind: Mapping[str, int]) -> str:
    kind = max(by_kind, key=by_kind.__getitem__)
    return kind if by_kind[kind] >= MOSTLY * sum(by_kind.values()) else SEVERAL
