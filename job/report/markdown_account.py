"""The sections of report.md that speak of the run itself: sources, quality, cost, method, ledger.

Invariant: as in `markdown.py`, nothing that comes from outside can become markup.
"""

from __future__ import annotations

from collections.abc import Iterator

from job.report.account import Rows
from job.report.escape import code, code_cell, prose, table
from job.report.view import ROWS, View


def account(view: View) -> Iterator[str]:
    """The account of the run as blocks of Markdown, in the order of the page."""
    for section in (_sources, _quality, _cost, _method):
        yield from section(view)


def _sources(view: View) -> Iterator[str]:
    words, sources, of_run = view.words, view.report["sources"], view.account
    numbers = ("read", "records", "rejected", "skipped")
    yield f"## {words('sources')}"
    yield table(
        [words("source"), *map(words, ("read", "kept", "rejected", "skipped"))],
        [
            [code_cell(source["source"]), *(source[name] for name in numbers)]
            for source in sources[:ROWS]
        ],
    )
    if len(sources) > ROWS:
        yield words("sources_rest", n=len(sources) - ROWS)
    yield f"### {words('rejections')}"
    if not of_run.rejected():
        yield words("rejections_none")
    else:
        yield _table(words("rejected"), of_run.rejected(), view)
        yield "\n".join(
            f"- {words.labelled(prose(words.name('reason', row['reason'])), code(row['excerpt']))}"
            f"{words.bracketed(code(view.where(row)))}"
            for row in view.report["quality"]["rejected_examples"]
        )
    if of_run.skipped():
        yield f"### {words('skips')}"
        yield _table(words("skipped"), of_run.skipped(), view)


def _quality(view: View) -> Iterator[str]:
    words, of_run = view.words, view.account
    yield f"## {words('quality')}"
    for heading, rows in (
        ("way", of_run.ways()),
        ("outcome", of_run.outcomes()),
        ("flags", of_run.oddities()),
    ):
        if rows:
            yield _table(words(heading), rows, view)


def _cost(view: View) -> Iterator[str]:
    words, of_run = view.words, view.account
    yield f"## {words('cost')}"
    for heading, rows in (
        (words("asked"), of_run.cost()),
        (words("by_tier"), of_run.tiers()),
        *of_run.cost_parts(),
        (words("by_pack_size"), of_run.packs()),
        (words("seconds"), of_run.seconds()),
        (words("by_station"), of_run.stations()),
    ):
        if rows:
            yield _table(heading, rows, view)


def _method(view: View) -> Iterator[str]:
    words, of_run = view.words, view.account
    masked = view.report["quality"]["masked"]
    yield f"## {words('method')}"
    yield prose(of_run.method())
    yield "  \n".join(
        words.labelled(f"**{name}**", prose(str(value))) for name, value in of_run.particulars()
    )
    yield f"## {words('privacy')}"
    yield words("privacy_masked", n=masked) if masked else words("privacy_none")
    if masked:
        yield _table(words("private"), of_run.masked(), view)
    yield f"## {words('ledger')}"
    yield "  \n".join(prose(equation) for equation in of_run.equations())


def _table(heading: str, rows: Rows, view: View) -> str:
    cells = [[prose(name), prose(n) if isinstance(n, str) else n] for name, n in rows]
    return table([heading, view.words("total")], cells)
