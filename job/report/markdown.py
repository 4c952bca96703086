"""report.json -> report.md: the page for a terminal or a pull request.

Invariant: what comes from records or from the model cannot become markup, a link, a mention or a
control sequence: quotes and names of files stand in code spans, prose is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from job.records import SEVERITIES
from job.report.card import Card, quotes, tidy
from job.report.changes import LISTED
from job.report.escape import code, prose, table
from job.report.evidence import QUOTES
from job.report.markdown_account import account
from job.report.view import ROWS, View


def render_markdown(report: Mapping[str, Any]) -> str:
    """The report as Markdown, in the report's language and the order of the page."""
    view = View(report)
    sections = (_top, _changes, _incidents, _themes, _praised, _contradictions, _small, _muted)
    blocks = [block for section in (*sections, account) for block in section(view)]
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
        yield "\n".join(_action(rank, action, view) for rank, action in enumerate(actions[:3], 1))
        if len(actions) > 3:
            yield words("more_actions", n=len(actions) - 3)
    if view.chart:
        yield f"## {view.chart_title()}"
        names = [s for s in reversed(SEVERITIES) if s in view.severities]
        yield table(
            [words("time"), *map(words, names), words("total")],
            [
                [view.label(bar), *(dict(bar.parts).get(name, 0) for name in names), bar.records]
                for bar in view.chart.bars
                if bar.records
            ],
        )
        yield prose(words("chart_counts"))
    yield prose(view.trust())


def _action(rank: int, action: Mapping[str, Any], view: View) -> str:
    words = view.words
    do, title = view.action(action)
    marks = [words(action["severity"])]
    if action["returned"]:
        marks.append(words("returned"))
    if action["status"] in ("new", "worse"):
        marks.append(words(f"status_{action['status']}"))
    facts = [*marks, prose(title), words("records", n=action["records"])]
    if action["users"]:
        facts.append(words("users", n=action["users"]))
    return f"{rank}. **{prose(do)}**  \n   {' · '.join(facts)}"


def _changes(view: View) -> Iterator[str]:
    changes, words = view.changes, view.words
    if not changes.shown:
        return
    yield f"## {words('changes')} · {prose(changes.against())}"
    yield " · ".join(f"{name} {before} → {now:,}" for name, before, now in changes.totals())
    for status, cards in changes.cards.items():
        if cards:
            yield f"### {words(f'status_{status}')} · {words('problems', n=len(cards))}"
            yield "\n".join(
                _line(card.severity, card.heading, _extent(card, words), view)
                for card in cards[:LISTED]
            )
            if len(cards) > LISTED:
                yield words("more_actions", n=len(cards) - LISTED)
    if changes.gone:
        yield f"### {words('status_gone')} · {words('problems', n=len(changes.gone))}"
        yield "\n".join(
            _line(theme["severity"], tidy(theme["title"]), changes.gone_facts(theme), view)
            for theme in changes.gone[:LISTED]
        )
        if len(changes.gone) > LISTED:
            yield words("small_rest", n=len(changes.gone) - LISTED)
    if changes.same or not changes.any:
        yield words("unchanged" if changes.any else "nothing_changed", n=changes.same)
    yield prose(words("change_rule"))


def _incidents(view: View) -> Iterator[str]:
    words, incidents = view.words, view.incidents()
    if incidents:
        yield f"## {words('incidents')} · {words('incident_count', n=len(incidents))}"
    for incident in incidents:
        yield f"### {prose(tidy(incident['title']))}"
        facts = [
            f"**{words(incident['severity'])}**",
            words("likely"),
            words("records", n=incident["records"]),
            words("problems", n=len(incident["cards"])),
            *filter(None, [incident["span"]]),
        ]
        yield " · ".join(facts)
        yield prose(incident["why"])
        yield "\n".join(
            f"- {code(message['text'])} · {words('records', n=message['records'])}"
            for message in incident["messages"]
        )
        places = [
            words.labelled(f"**{words(name)}**", prose(words.enumerate(incident[name])))
            for name in ("services", "hosts")
            if incident[name]
        ]
        if places:
            yield "  \n".join(places)


def _themes(view: View) -> Iterator[str]:
    words = view.words
    for rank, (kind, cards) in enumerate(view.cards.items()):
        yield f"## {view.kind_heading(kind)} · {words('problems', n=len(cards))}"
        if rank == 0:
            yield prose(words("legend"))
        for card in cards:
            yield from _card(card, view)


def _card(card: Card, view: View) -> Iterator[str]:
    words = view.words
    yield f"### {prose(card.heading)}"
    marks = " · ".join(f"**{prose(name)}**" for _, name in card.badges())
    facts = filter(None, (card.change(), *card.facts()))
    yield f"{marks} · {prose(' · '.join(facts))}  \n{' · '.join(card.of_kind())}"
    if card.summary:
        yield prose(card.summary)
    theme = card.theme
    cause = (card.cause_label, card.cause) if card.cause else (words("cause"), words("cause_none"))
    labelled = [
        cause,
        (words("action"), theme["action"]),
        (words("severity_reason"), theme["severity_reason"]),
        (words("varied"), words.enumerate(card.varied())),
    ]
    for label, named, rest in card.affected():
        parts = words.enumerate(f"{name} ×{n:,}" for name, n in named)
        labelled.append((label, f"{parts} {words('more', n=rest)}" if rest else parts))
    yield "  \n".join(
        words.labelled(f"**{label}**", prose(text)) for label, text in labelled if text
    )
    yield "\n".join(_piece(piece, view, words(piece["role"])) for piece in card.quotes())


def _piece(piece: Mapping[str, Any], view: View, label: str = "") -> str:
    said = code(piece["quote"] or piece["text"][:160])
    time = f"{view.time(piece['time'])} · " if piece["time"] else ""
    words = view.words.labelled(label, said) if label else said
    return f"- {words}{view.words.bracketed(time + code(view.where(piece)))}"


def _line(severity: str, title: str, facts: str, view: View) -> str:
    return f"- **{view.words(severity)}** {prose(title)} · {prose(facts)}"


def _extent(card: Card, words: Any) -> str:
    return card.change() or str(words("records", n=card.records))


def _praised(view: View) -> Iterator[str]:
    words, positive = view.words, view.report["positive"]
    if not positive["records"]:
        return
    yield f"## {words('praised')} · {words('records', n=positive['records'])}"
    for group in positive["themes"][:ROWS]:
        title = prose(tidy(group["title"])) if group["title"] else words("praise_other")
        yield f"### {title} · {words('records', n=group['records'])}"
        yield "\n".join(_piece(piece, view) for piece in quotes(group, len(group["evidence"])))


def _contradictions(view: View) -> Iterator[str]:
    words, found = view.words, view.report["contradictions"]
    if found:
        total = sum(one["records"] for one in found)
        yield f"## {words('contradictions')} · {words('records', n=total)}"
    for one in found:
        yield f"### {words(one['rule'])} · {words('records', n=one['records'])}"
        yield words(f"{one['rule']}_note")
        lines = []
        for piece in one["evidence"][:QUOTES]:
            lines.append(_piece(piece, view))
            if counter := piece.get("counter"):
                against = _piece({**counter, "quote": None}, view, words("against"))
                lines.append("  " + against)
        yield "\n".join(lines)


def _small(view: View) -> Iterator[str]:
    words, unthemed = view.words, view.report["quality"]["unthemed"]
    if view.small:
        yield f"## {words('small')} · {words('problems', n=len(view.small) + view.small_rest)}"
        yield "\n".join(
            _line(card.severity, card.heading, words("records", n=card.records), view)
            for card in view.small
        )
    if view.small_rest:
        yield words("small_rest", n=view.small_rest)
    if unthemed:
        yield words("unthemed", n=unthemed)


def _muted(view: View) -> Iterator[str]:
    words, known = view.words, view.report["known"]
    if not view.muted and not known["unused"]:
        return
    counts = words("muted_count", n=known["muted"]["themes"], records=known["muted"]["records"])
    yield f"## {words('known')} · {counts}"
    if view.muted:
        yield prose(words("muted_note"))
        yield "\n".join(
            _line(card.severity, card.heading, " · ".join(card.facts()), view)
            for card in view.muted
        )
    if known["unused"]:
        yield prose(words("known_unused", names=words.enumerate(known["unused"])))
