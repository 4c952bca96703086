"""What both pages show of a report, in what order and in what words.

Invariant: made from the report alone; every theme is either in `cards`, in `small` or among the
`small_rest` that are only counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from job.report.chart import Bar, chart
from job.report.evidence import QUOTES
from job.report.headline import detail, notices, trust
from job.report.words import Words, share

CARDS = 60
"""Themes shown in full; with 20 pieces of evidence each they fill some 3 MB of a page."""
FIRST_CARDS = 6
COMMON = 3
"""Records that make a theme worth a card, beyond the first `FIRST_CARDS` themes."""
ROWS = 200
"""Of small themes, of sources and of kinds of praise, the most that are listed."""


class View:
    """A report as its pages show it.

    `cards` holds themes by the kind most of their records are of, the worst kind first.
    """

    def __init__(self, report: Mapping[str, Any]) -> None:
        self.report = report
        self.words = Words(report["method"]["language"])
        self.chart = chart(report["period"])
        first, last = report["period"]["first"], report["period"]["last"]
        self._with_day = first is not None and first[:10] != last[:10]
        self.cards: dict[str, list[Mapping[str, Any]]] = {}
        small: list[Mapping[str, Any]] = []
        for rank, theme in enumerate(report["themes"]):
            weighty = theme["needs_action"] or theme["records"] >= COMMON or rank < FIRST_CARDS
            if weighty and sum(map(len, self.cards.values())) < CARDS:
                kind = max(theme["by_kind"], key=theme["by_kind"].__getitem__)
                self.cards.setdefault(kind, []).append(theme)
            else:
                small.append(theme)
        self.small, self.small_rest = small[:ROWS], max(0, len(small) - ROWS)

    def period(self) -> str:
        """The days and times that the data spans, and their zone."""
        first, last = self.report["period"]["first"], self.report["period"]["last"]
        if first is None:
            return self.words("no_times")
        span = self.words.period(datetime.fromisoformat(first), datetime.fromisoformat(last))
        return f"{span} · {self.report['period']['timezone']}"

    def notices(self) -> list[tuple[str, str]]:
        """(Name, sentence) of what must be known before anything is believed."""
        return notices(self.report, self.words)

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

    def time(self, iso: str) -> str:
        """A time as short as the period allows."""
        return self.words.moment(datetime.fromisoformat(iso), self._with_day)

    def facts(self, theme: Mapping[str, Any]) -> list[str]:
        """How often a theme was reported, by how many users, and when."""
        parts = [
            self.words("records", n=theme["records"]),
            self.words("share_of_problems", share=share(theme["share"])),
        ]
        if theme["users"]:
            parts.append(self.words("users", n=theme["users"]))
        if theme["first"] is not None:
            first, last = (datetime.fromisoformat(theme[end]) for end in ("first", "last"))
            parts.append(self.words.span(first, last, self._with_day))
        return parts

    def quotes(self, theme: Mapping[str, Any], limit: int = QUOTES) -> list[Mapping[str, Any]]:
        """The pieces to quote on the card of a theme: no two say the same."""
        return [piece for piece in theme["evidence"][:limit] if piece["role"] != "same"]

    def where(self, piece: Mapping[str, Any], short: bool = False) -> str:
        """The place of a piece: source and line, or its byte where the line is not known."""
        source = PurePosixPath(piece["source"]).name if short else piece["source"]
        if piece["line"] is not None:
            return f"{source}:{piece['line']}"
        return self.words("byte", source=source, n=piece["position"])

    def tick(self, bar: Bar) -> str:
        """The label under a bar."""
        if self.chart is not None and self.chart.unit in ("hour", "day"):
            hourly = self.chart.unit == "hour"
            return f"{bar.start:%H:%M}" if hourly else self.words.short_day(bar.start)
        return f"{bar.start:%Y-%m}"

    def label(self, bar: Bar) -> str:
        """The label of a bar where it stands alone."""
        if self.chart is not None and self.chart.unit == "hour":
            return self.words.moment(bar.start, self._with_day)
        return self.tick(bar)

    def cost(self) -> list[tuple[str, float]]:
        """What the run asked of its provider; the price only where it is known."""
        names = ("requests", "retries", "rate_limited", "tokens_in", "tokens_out", "usd")
        cost = self.report["cost"]
        return [(self.words(name), cost[name]) for name in names if cost[name] is not None]

    def seconds(self) -> list[tuple[str, float]]:
        """Where the time of the run went, in seconds."""
        timing = self.report["timing"]
        parts = [(self.words(name), timing[f"{name}_s"]) for name in ("wall", "calls", "overhead")]
        parts += [(self.words("station", name=name), s) for name, s in timing["stations"].items()]
        return [(name, float(value)) for name, value in parts]

    def method(self) -> str:
        """How the report was made, in one paragraph."""
        method = self.report["method"]
        how = (
            self.words("method_rules")
            if method["analyst"] == "rules"
            else self.words("method_model", model=method["model"])
        )
        join = "" if self.words.language == "zh" else " "
        return join.join((how, self.words("method_severity"), self.words("method_share")))

    def equations(self) -> tuple[str, str]:
        """The account of the run: the two sums that must balance."""
        ledger = self.report["ledger"]
        return self.words("ledger_read", **ledger), self.words("ledger_records", **ledger)
