"""What a person sees while a run goes on, and its last lines.

Invariant: progress goes to stderr (a live display on a terminal, plain lines every few seconds
elsewhere), the last lines to stdout, the ledger last of all; nothing of a log's text is
interpreted by the terminal. A look that fails costs a line of progress, never the run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from job import ledger as account
from job.estimates.pace import seconds_left
from job.printable import printable
from job.progress import View
from job.report.instructions import compression_words
from job.report.words import Words
from job.spend.money import as_written, shown
from job.timing import Stations

LIVE_SECONDS = 0.5
PLAIN_SECONDS = 5.0
"""Between two looks at the board, and between two plain lines."""
SHOWN_THEMES = 5
SHOWN_INCIDENTS = 2
_DOING = {
    "start": "starting",
    "plan": "looking at the input",
    "start_ray": "starting Ray",
    "sample": "choosing the sample",
    "compress": "making the rules shorter",
    "canary": "asking in both modes",
    "ask": "reading and asking",
    "join": "joining what was folded",
    "themes": "grouping",
    "results": "writing results",
    "names": "naming the problems",
    "account": "counting again",
    "report": "writing the report",
}
"""What a run does in each of its stations (`Stations`)."""
_MEANING = {
    "rejected": "no record, see rejected.jsonl",
    "skipped": "left out, as you asked for",
    "recalled": "paid for by an earlier run",
    "folded": "says the same as another one, whose answer it has",
    "review": "its answer lacks something, see review.jsonl",
    "failed": "without an answer, see failed.jsonl",
    "unasked": "left when the run stopped",
}
"""What the words of the account mean."""


class Watcher:
    """Looks at the board while the run goes on and shows what it sees."""

    def __init__(self, console: Console, stations: Stations, quiet: bool) -> None:
        self._console = console
        self._stations = stations
        self._quiet = quiet
        self._lock = threading.Lock()
        self._look: Callable[[], View] | None = None
        self._total = 0

    @contextmanager
    def board(self, look: Callable[[], View], slices: int) -> Iterator[None]:
        """During the block the board can be looked at with `look`; `slices` are to be read."""
        with self._lock:
            self._look, self._total = look, slices
        try:
            yield
        finally:
            with self._lock:
                self._look = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Show progress during the block."""
        if self._quiet:
            yield
            return
        done = threading.Event()
        target = self._live if self._console.is_terminal else self._plain
        thread = threading.Thread(target=target, args=(done,), name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join(timeout=5)

    def _live(self, done: threading.Event) -> None:
        with Live(console=self._console, refresh_per_second=4, transient=True) as live:
            while not done.wait(LIVE_SECONDS):
                live.update(Group(*(Text(line) for line in self._lines())))

    def _plain(self, done: threading.Event) -> None:
        while not done.wait(PLAIN_SECONDS):
            self._console.print(Text(" | ".join(self._lines())), soft_wrap=True)

    def _lines(self) -> list[str]:
        elapsed = time.monotonic() - self._stations.started
        first = f"{elapsed:5.0f} s  {_DOING.get(self._stations.current, self._stations.current)}"
        view = self._seen()
        if view is None:
            return [first]
        left = seconds_left(view, self._total)
        return [first, *progress_lines(view, self._total, left)]

    def _seen(self) -> View | None:
        """What the board shows; None if it cannot be seen now. The lock is not held meanwhile: a
        look may take seconds, and the run must be able to take the board away."""
        with self._lock:
            look = self._look
        try:
            return look() if look else None
        except Exception:  # Whatever it is, the run itself will meet it.
            return None


def progress_lines(view: View, slices: int, left: float | None) -> list[str]:
    """The board in words: per station counts, the limit in use, what waits, and the seconds
    `left`."""
    asking, limiter = view.asking, view.limiter
    lines = [
        f"read {view.slices}/{slices} slices, {view.records:,} records, "
        f"{view.rejected:,} rejected, {view.folded:,} folded",
    ]
    if not limiter:
        return lines
    lines.append(
        f"answered {asking.answered:,}, recalled {asking.recalled:,}, review {asking.review:,}, "
        f"failed {asking.failed:,}, unasked {asking.unasked:,}"
    )
    rate = f"{limiter['rpm']:.0f}/min" if limiter.get("rpm") else "no rate limit met"
    lines.append(
        f"permits {limiter['in_use']}/{limiter['concurrency']} ({rate}), "
        f"{view.calls.requests:,} requests, {view.calls.rate_limited:,} rate limited, "
        f"breaker {limiter['breaker']}"
    )
    if packs := view.facts.get("packs"):
        lines[-1] += f", packs of {packs['tokens']['fast']:,} tokens"
    lines += _spent(view.facts.get("spend") or {})
    lines.append(
        f"waiting {asking.waiting_fast:,} fast, {asking.waiting_slow:,} slow, "
        f"{asking.waiting_again:,} again" + (f", about {left:,.0f} s left" if left else "")
    )
    return lines


def _spent(spend: Mapping[str, Any]) -> list[str]:
    """What was spent so far; nothing where no price is known."""
    if spend.get("spent") is None:
        return []
    of = f" of {as_written(Decimal(spend['cap']))}" if spend["cap"] else ""
    return [f"spent {shown(Decimal(spend['spent']))}{of} {spend['currency']}"]


def closing_lines(report: Mapping[str, Any], view: View, path: str) -> list[str]:
    """The dozen lines a run ends with."""
    run, period, ledger = report["run"], report["period"], report["ledger"]
    calls = ledger["calls"]
    lines = []
    if run["stopped"]:
        lines.append(f"STOPPED EARLY: {run['stopped']['reason']}. The report is partial.")
    if run["provider"] == "extractive":
        lines.append(_span(period))
        lines.append(
            "No language model was used: the built-in analyst works by rules of the language."
        )
    else:
        lines.append(f"{_span(period)}   model: {run['model']}")
    lines.append(str(report["headline"]))
    lines += _problems(report["themes"])
    lines += [
        f"likely one incident: {incident['title']} ({incident['records']:,} records)"
        for incident in report["incidents"][:SHOWN_INCIDENTS]
    ]
    lines += _comparison(report)
    if muted := report["known"]["muted"]["themes"]:
        lines.append(f"muted: {muted:,} problems, by {report['known']['file']}")
    if calls["requests"]:
        share = calls["rate_limited"] / calls["requests"]
        lines.append(
            f"limit: {share:.1%} rate limited, at most {view.asking.peak_in_flight} in flight; "
            f"{calls['requests']:,} requests, {calls['retries']:,} retries"
        )
        lines.append(f"tokens: {calls['tokens_in']:,} in, {calls['tokens_out']:,} out")
    lines += _instructions(run.get("own_instructions"))
    lines += _cost(report["cost"])
    lines += _routing(report["timing"].get("routing"))
    lines.append(f"quality: {ledger['review']:,} to review, {ledger['failed']:,} failed")
    lines.append(f"report: {path}")
    lines += _legend(ledger)
    return [printable(line) for line in (*lines, *account.lines(dict(ledger)))]


def _legend(ledger: Mapping[str, Any]) -> list[str]:
    """What the words mean in the account below, those of them that count anything."""
    words = [f"{name}: {said}" for name, said in _MEANING.items() if ledger[name]]
    return [f"in the account below, {'; '.join(words)}"] if words else []


def _instructions(own: Mapping[str, Any] | None) -> list[str]:
    """What came of making the user's own instructions shorter, where that was asked for."""
    if own is None or own["compression"] is None:
        return []
    return [f"rules made shorter: {compression_words(own['compression'], Words('en'))}"]


def _cost(cost: Mapping[str, Any]) -> list[str]:
    """What the run has cost so far; nothing where it cost nothing or no price is known."""
    if not cost["cost"]:
        return []
    of = f" of {as_written(cost['max_spend'])}" if cost["max_spend"] else ""
    parts = [f"spent: {shown(Decimal(str(cost['cost'])))}{of} {cost['currency']}"]
    for name, words in (("cost_before", "by earlier commands"), ("unconfirmed", "unconfirmed")):
        if cost[name]:
            parts.append(f"{shown(Decimal(str(cost[name])))} of it {words}")
    return [", ".join(parts)]


def _routing(routing: Mapping[str, Any] | None) -> list[str]:
    """How several models shared what was asked; nothing where one did all, or none was."""
    if routing is None or not any(tier["calls"] for tier in routing["tiers"]):
        return []
    parts = [f"{tier['answered']:,} by {tier['model']}" for tier in routing["tiers"]]
    line = f"shared: {', '.join(parts)}; {routing['escalated']:,} handed on"
    if routing["saved"] is None:
        return [line]
    saved = Decimal(str(routing["saved"]))
    than = "less" if saved >= 0 else "more"
    best = routing["tiers"][-1]["model"]
    return [f"{line}; {shown(abs(saved))} {routing['currency']} {than} than by {best} alone"]


def _problems(themes: Sequence[Mapping[str, Any]]) -> list[str]:
    """A table of the first problems, those that need action before the others."""
    # Python's sort keeps the report's order among equals.
    themes = sorted(themes, key=lambda theme: not theme["needs_action"])
    themes = [theme for theme in themes if theme["muted_until"] is None]
    if not themes:
        return []
    compared = any(theme["status"] or theme["returned"] for theme in themes)
    rows = [("records", "severity", "change", "problem")]
    for theme in themes[:SHOWN_THEMES]:
        change = "back" if theme["returned"] else theme["status"] or ""
        rows.append((f"{theme['records']:,}", theme["severity"], change, theme["title"]))
    lines = [
        f"  {records:>7}  {severity:<8}  {f'{change:<6}  ' if compared else ''}{title}"
        for records, severity, change, title in rows
    ]
    if len(themes) > SHOWN_THEMES:
        more = themes[SHOWN_THEMES:]
        idle = sum(not theme["needs_action"] for theme in more)
        which = "" if idle == len(more) else f"{idle:,} of them "
        said = f", {which}without need for action" if idle else ""
        lines.append(f"  and {len(more):,} more{said}")
    return lines


def _comparison(report: Mapping[str, Any]) -> list[str]:
    comparison = report["comparison"]
    if comparison is None:
        return []
    if not comparison["comparable"]:
        return [f"not compared with earlier runs: {_INCOMPARABLE[comparison['reason']]}"]
    counts = ", ".join(f"{n:,} {status}" for status, n in comparison["counts"].items())
    runs = comparison["runs"]
    against = runs[0]["path"] if len(runs) == 1 else f"the median of {len(runs)} runs"
    return [f"against {against}: {counts}"]


_INCOMPARABLE = {
    "model": "another model",
    "instructions": "other instructions",
    "language": "another language of the report",
    "vectors": "another embedding model",
    "sample": "another sample",
    "partial": "the earlier run is partial",
    "partial_now": "this run is partial",
    "none_found": "there is none",
}


def _span(period: Mapping[str, Any]) -> str:
    first, last = period.get("first"), period.get("last")
    return f"{first} to {last}" if first and last else "no record has a time"
