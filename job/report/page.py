"""report.json -> report.html: one file that asks nothing of anybody.

Invariant: everything shown comes from the report and is escaped; the page holds no script, loads
nothing, and is at most `LIMIT` bytes long.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from job.reduce.pieces import EVIDENCE
from job.report.card import quotes, tidy
from job.report.changes import LISTED
from job.report.draw import NARROW, WIDE, draw_chart, draw_sparkline
from job.report.evidence import QUOTES
from job.report.view import ROWS, View

LIMIT = 5_000_000
"""Bytes. Reached only by days with many large themes, which then show fewer pieces each."""
PIECES = (EVIDENCE, 8, QUOTES, 1)
"""Pieces of evidence a theme: the first of these numbers that keeps the page within `LIMIT`."""


def render_html(report: Mapping[str, Any]) -> str:
    """The page of `report`, in the report's language."""
    view = View(report)
    drawn = _drawn(view)
    page = ""
    for pieces in PIECES:
        page = _render(view, drawn, pieces)
        if len(page.encode()) <= LIMIT:
            break
    return page


def _drawn(view: View) -> dict[str, Any]:
    """The chart at both widths, and what draws a sparkline (once, however often it is shown)."""
    spark = {"spark": cache(draw_sparkline)}
    if view.chart is None:
        return spark
    words = (view.severities, view.tick, view.label, view.chart_title(), view.chart_summary())
    return spark | {
        name: draw_chart(view.chart, width, *words)
        for name, width in (("wide", WIDE), ("narrow", NARROW))
    }


@cache
def _template() -> Template:
    """Compiled once: that takes longer than to render a page of it."""
    env = Environment(
        loader=PackageLoader("job", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(num=_number, around_quote=_around_quote, tidy=tidy)
    return env.get_template("page.html.j2")


def _render(view: View, drawn: Mapping[str, Any], pieces: int) -> str:
    return _template().render(
        r=view.report,
        v=view,
        w=view.words,
        rows=ROWS,
        listed=LISTED,
        drawn=drawn,
        quotes=quotes,
        pieces=pieces,
        quote_limit=min(QUOTES, pieces),
    )


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _around_quote(piece: Mapping[str, Any]) -> tuple[str, str, str]:
    """The text of a piece before its quote, the quote, and after it."""
    if not piece["quote"]:
        return piece["text"], "", ""
    before, quote, after = piece["text"].partition(piece["quote"])
    return before, quote, after
