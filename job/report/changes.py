"""What the pages say of earlier runs: what is new, worse, better and gone.

Invariant: nothing is said of a change where the runs are not comparable, except why not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from job.report.card import Card
from job.report.words import Words, shown

STATUSES = ("new", "worse", "better")
LISTED = 20
"""Themes named of each status, the gravest: the others have their place further down."""


class Changes:
    """The comparison of `report`, for the cards of its themes."""

    def __init__(self, report: Mapping[str, Any], words: Words, cards: Sequence[Card]) -> None:
        self._comparison: Mapping[str, Any] | None = report["comparison"]
        self._words = words
        self.shown = self._comparison is not None and self._comparison["comparable"]
        self.cards = {
            status: [card for card in cards if card.theme["status"] == status and not card.muted]
            for status in STATUSES
            if self.shown
        }

    @property
    def gone(self) -> Sequence[Mapping[str, Any]]:
        """Themes of the earlier runs without a record now."""
        return self._comparison["gone"] if self._comparison and self.shown else ()

    @property
    def same(self) -> int:
        """How many themes are much as they were."""
        counts = self._comparison["counts"] if self._comparison and self.shown else None
        return counts["same"] if counts else 0

    @property
    def any(self) -> bool:
        """Whether anything changed."""
        return bool(self.gone) or any(self.cards.values())

    def notices(self) -> list[tuple[str, str]]:
        """(Name, sentence) where a comparison was asked for and cannot be made."""
        comparison = self._comparison
        if comparison is None or comparison["comparable"]:
            return []
        reason = self._words(f"not_comparable_{comparison['reason']}")
        return [("not_comparable", self._words("notice_not_comparable", reason=reason))]

    def against(self) -> str:
        """With what this run is compared."""
        runs = self._comparison["runs"] if self._comparison else []
        days = sorted(date.fromisoformat(run["day"]) for run in runs if run["day"])
        if len(runs) == 1:
            if days:
                return self._words("against_day", day=self._words.day(days[0]))
            return self._words("against_run", path=runs[0]["path"])
        if not days or days[0] == days[-1]:
            return self._words("against_runs", n=len(runs))
        first, last = self._words.short_day(days[0]), self._words.short_day(days[-1])
        return self._words("against_days", n=len(runs), first=first, last=last)

    def totals(self) -> list[tuple[str, str, int]]:
        """(What, how many before, how many now) of records and problem records."""
        comparison = self._comparison or {}
        return [
            (self._words(f"compared_{name}"), shown(pair["before"]), pair["now"])
            for name in ("records", "problems")
            if (pair := comparison.get(name)) is not None
        ]

    def gone_facts(self, theme: Mapping[str, Any]) -> str:
        """How big a theme was that is gone, and when it was last there."""
        parts = [self._words("before_records", n=theme["before"])]
        if theme["last_seen"]:
            day = self._words.short_day(date.fromisoformat(theme["last_seen"]))
            parts.append(self._words("last_seen", day=day))
        return " · ".join(parts)
