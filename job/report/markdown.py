"""report.json -> report.md: the page for a terminal or a pull request.

Invariant: what comes from records or from the model cannot become markup, a link, a mention or a
control sequence: quotes and names of files stand in code spans, prose is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from job.records import SEVERITIES
from job.report.escape import code, code_cell, prose, table
from job.report.evidence import QUOTES
from job.report.view import ROWS, View


def render_markdown(report: Mapping[str, Any]) -> str:
    """The report as Markdown, in the report's language and the order of the page."""
    view = View(report)
    sections = (_top, _themes, _praised, _small, _sources, _quality, _cost, _method)
    blocks = [block for section in sections for block in section(view)]
    return "\n\n".join(blocks) + "\n"


def _top(view: View) -> Iterator[str]:
    words, actions = view.words, view.report["actions"]
    yield f"# {prose(view.report['headline'])}"
    for _, sentence in view.notices():
        yield f"> {prose(sentence)}"
    yield prose(f"{words('title')} · {view.period()}")
    if view.detail():
        yield prose(view.detail())
    if actions:
        yield f"## {words('actions')}"
        yield "\n".join(
            f"{rank}. **{prose(action['action'] or action['title'])}**  \n"
            f"   {words(action['severity'])} · {prose(action['title'])} · "
            f"{words('records', n=action['records'])}"
            for rank, action in enumerate(actions[:QUOTES], 1)
        )
        if len(actions) > QUOTES:
            yield words("more_actions", n=len(actions) - QUOTES)
    if view.chart:
        yield f"## {words(f'per_{view.chart.unit}')}"
        names = tuple(reversed(SEVERITIES))
        bars = [
            (view.label(bar), dict(bar.parts), bar.records)
            for bar in view.chart.bars
            if bar.records
        ]
        yield table(
            [words("time"), *map(words, names), words("total")],
            [[label, *(counts.get(name, 0) for name in names), n] for label, counts, n in bars],
        )
    yield prose(view.trust())


def _themes(view: View) -> Iterator[str]:
    words = view.words
    for kind, themes in view.cards.items():
        yield f"## {words(kind)} · {words('problems', n=len(themes))}"
        for theme in themes:
            yield f"### {prose(theme['title'])}"
            yield f"**{words(theme['severity'])}** · {prose(' · '.join(view.facts(theme)))}"
            yield from _words_of(theme, view)
            yield "\n".join(
                _piece(piece, view, words(piece["role"])) for piece in view.quotes(theme)
            )


def _words_of(theme: Mapping[str, Any], view: View) -> Iterator[str]:
    if theme["summary"]:
        yield prose(theme["summary"])
    cause = "cause_stated" if theme["basis"] == "stated" else "cause_inferred"
    labelled = ((cause, "cause"), ("action", "action"), ("severity_reason", "severity_reason"))
    lines = [
        view.words.labelled(f"**{view.words(label)}**", prose(theme[name]))
        for label, name in labelled
        if theme[name]
    ]
    if lines:
        yield "  \n".join(lines)


def _piece(piece: Mapping[str, Any], view: View, label: str = "") -> str:
    said = code(piece["quote"] or piece["text"][:160])
    time = f"{view.time(piece['time'])} · " if piece["time"] else ""
    place = code(view.where(piece))
    words = view.words.labelled(label, said) if label else said
    return f"- {words} ({time}{place})"


def _praised(view: View) -> Iterator[str]:
    words, positive = view.words, view.report["positive"]
    if not positive["records"]:
        return
    yield f"## {words('praised')} · {words('records', n=positive['records'])}"
    for group in positive["themes"][:ROWS]:
        title = prose(group["title"]) if group["title"] else words("praise_other")
        yield f"### {title} · {words('records', n=group['records'])}"
        yield "\n".join(_piece(piece, view) for piece in view.quotes(group, len(group["evidence"])))


def _small(view: View) -> Iterator[str]:
    words, unthemed = view.words, view.report["quality"]["unthemed"]
    if view.small:
        yield f"## {words('small')} · {words('problems', n=len(view.small) + view.small_rest)}"
        yield "\n".join(
            f"- **{words(theme['severity'])}** {prose(theme['title'])} · "
            f"{words('records', n=theme['records'])}"
            for theme in view.small
        )
    if view.small_rest:
        yield words("small_rest", n=view.small_rest)
    if unthemed:
        yield words("unthemed", n=unthemed)


def _sources(view: View) -> Iterator[str]:
    words, sources, quality = view.words, view.report["sources"], view.report["quality"]
    numbers = ("read", "records", "rejected", "skipped")
    yield f"## {words('sources')}"
    yield table(
        [words("source"), words("format"), *map(words, ("read", "kept", "rejected", "skipped"))],
        [
            [
                code_cell(source["source"]),
                prose(source["format"]),
                *(source[name] for name in numbers),
            ]
            for source in sources[:ROWS]
        ],
    )
    if len(sources) > ROWS:
        yield words("sources_rest", n=len(sources) - ROWS)
    yield f"### {words('rejections')}"
    if not quality["rejected_by"]:
        yield words("rejections_none")
        return
    yield table([words("rejected"), words("total")], _counts(quality["rejected_by"]))
    yield "\n".join(
        f"- {prose(row['reason'])}: {code(row['excerpt'])} ({code(view.where(row))})"
        for row in quality["rejected_examples"]
    )


def _quality(view: View) -> Iterator[str]:
    words, quality = view.words, view.report["quality"]
    yield f"## {words('quality')}"
    for heading, name in (("way", "by_via"), ("outcome", "by_outcome")):
        yield table(
            [words(heading), words("total")], [[words(k), n] for k, n in quality[name].items()]
        )
    if quality["flags"]:
        yield table([words("flags"), words("total")], _counts(quality["flags"]))
    if quality["misquoted"]:
        yield f"{words('misquoted')}: {quality['misquoted']:,}"


def _cost(view: View) -> Iterator[str]:
    yield f"## {view.words('cost')}"
    for rows in (view.cost(), view.seconds()):
        yield table([" ", view.words("total")], [[prose(name), value] for name, value in rows])


def _method(view: View) -> Iterator[str]:
    words, report = view.words, view.report
    masked = report["quality"]["masked"]
    yield f"## {words('method')}"
    yield prose(view.method())
    yield f"## {words('privacy')}"
    yield words("privacy_masked", n=masked) if masked else words("privacy_none")
    if masked:
        yield table([" ", words("total")], _counts(report["ledger"]["masked"]))
    yield f"## {words('ledger')}"
    yield "  \n".join(prose(equation) for equation in view.equations())


def _counts(counts: Mapping[str, int]) -> list[list[object]]:
    return [[code_cell(name), n] for name, n in counts.items()]
