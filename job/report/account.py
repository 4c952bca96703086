"""What the pages say of the run itself: what was read, how it was answered, what it took.

Invariant: made from the report alone; a number that is zero and says nothing is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from job.report.instructions import instruction_rows
from job.report.money import cost_rows, parts
from job.report.packs import pack_rows
from job.report.routing import routing_rows
from job.report.words import Words

SHOWN_STATION_SECONDS = 0.05
"""A station that took less is not worth a line."""

Rows = list[tuple[str, Any]]
"""(Name, number or text) of a small table."""


class Account:
    """The account of `report` in `words`."""

    def __init__(self, report: Mapping[str, Any], words: Words) -> None:
        self._report, self._words = report, words

    def kinds(self, source: Mapping[str, Any]) -> str:
        """What the records of a source are."""
        return self._words.enumerate(self._words(kind) for kind in source["kinds"])

    def form(self, source: Mapping[str, Any]) -> str:
        """In what notation a source was written."""
        parts = (source["format"], source["encoding"], source["compression"])
        return self._words.enumerate(part for part in parts if part)

    def rejected(self) -> Rows:
        """How often input could not be used, by reason."""
        return self._named("reason", self._report["quality"]["rejected_by"])

    def skipped(self) -> Rows:
        """How many records a filter left out, by filter."""
        filters: Counter[str] = Counter()
        for source in self._report["sources"]:
            filters.update(source.get("skipped_by", {}))
        return self._named("filter", dict(filters.most_common()))

    def ways(self) -> Rows:
        """How the records were answered."""
        by_via = self._report["quality"]["by_via"]
        return [(self._words(via), n) for via, n in by_via.items() if n]

    def outcomes(self) -> Rows:
        """What the records say."""
        by_outcome = self._report["quality"]["by_outcome"]
        return [(self._words(outcome), n) for outcome, n in by_outcome.items() if n]

    def oddities(self) -> Rows:
        """What was odd about records and answers."""
        quality = self._report["quality"]
        rows = self._named("flag", quality["flags"])
        if quality["misquoted"]:
            rows.append((self._words("misquoted"), quality["misquoted"]))
        return rows

    def masked(self) -> Rows:
        """What was masked, by kind."""
        return self._named("private", self._report["ledger"]["masked"])

    def cost(self) -> Rows:
        """What the run asked of its provider, and what it has cost so far; nothing where it asked
        nobody."""
        names = ("requests", "retries", "rate_limited", "tokens_in", "tokens_out")
        cost = self._report["cost"]
        if not cost["requests"] and not cost["cost"]:
            return []
        return [(self._words(name), cost[name]) for name in names] + cost_rows(cost, self._words)

    def cost_parts(self) -> list[tuple[str, Rows]]:
        """The cost by kind, source and team."""
        return parts(self._report["cost"], self._words)

    def tiers(self) -> Rows:
        """What each of several models did; nothing where there was one."""
        return routing_rows(self._report, self._words)

    def packs(self) -> Rows:
        """The size of packs and what came of it; nothing where no pack was sent."""
        return pack_rows(self._report, self._words)

    def seconds(self) -> Rows:
        """Where the time of the run went, in seconds: the whole, its two parts, its stations."""
        timing = self._report["timing"]
        names = ("wall", "calls", "overhead") if timing["calls_s"] else ("wall",)
        return [(self._words(name), float(timing[f"{name}_s"])) for name in names]

    def stations(self) -> Rows:
        """Seconds by station, in the order of the run."""
        return [
            (self._words.name("station", name), float(seconds))
            for name, seconds in self._report["timing"]["stations"].items()
            if seconds >= SHOWN_STATION_SECONDS
        ]

    def method(self) -> str:
        """How the report was made, in one paragraph."""
        method, words = self._report["method"], self._words
        how = (
            words("method_rules")
            if method["analyst"] == "rules"
            else words("method_model", model=method["model"])
        )
        return words.sentences((how, words("method_severity"), words("method_share")))

    def particulars(self) -> Rows:
        """With what the report was made, and when: by the clock of the time zone named."""
        method = self._report["method"]
        of_model = ("provider", "model", "mode", "instructions")
        names = ("version", *(of_model if method["analyst"] == "model" else ()), "timezone")
        rows = [(self._words(name), method[name]) for name in names if method[name] is not None]
        rows += instruction_rows(method.get("own_instructions"), self._words)
        for name in ("started", "finished"):
            time = datetime.fromisoformat(method[name]).astimezone(ZoneInfo(method["timezone"]))
            rows.append((self._words(name), self._words.stamp(time)))
        return rows

    def equations(self) -> tuple[str, str]:
        """The two sums that must balance."""
        ledger = self._report["ledger"]
        return self._words("ledger_read", **ledger), self._words("ledger_records", **ledger)

    def _named(self, group: str, counts: Mapping[str, int]) -> Rows:
        return [(self._words.name(group, name), n) for name, n in counts.items()]
