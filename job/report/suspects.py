"""What code suspects: incidents and contradictions, as they stand in report.json.

Invariant: every number in a sentence made here stands beside it; what is only likely is called so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any
from zoneinfo import ZoneInfo

from job.records import SEVERITIES
from job.reduce.again import Seen
from job.reduce.contradictions import PROMISE, Contradictions
from job.reduce.incidents import FIELDS, LEAST_PART, Incident
from job.reduce.pieces import Piece
from job.reduce.tallies import Names
from job.report.evidence import LineOf, local, shown
from job.report.words import Words

COUNTER_CHARS = 300
"""Of the record that speaks against another."""


def incident_rows(
    incidents: Iterable[Incident],
    themes: Sequence[dict[str, Any]],
    seen: Seen,
    zone: ZoneInfo,
    words: Words,
) -> list[dict[str, Any]]:
    """The section `incidents`; puts into each of `themes` of which it is a part."""
    by_id = {theme["id"]: theme for theme in themes}
    rows = []
    for incident in incidents:
        members = [by_id[id] for id in incident.themes]
        for member in members:
            member["incident"] = incident.id
        lead = max(members, key=lambda t: (SEVERITIES.index(t["severity"]), t["records"], t["id"]))
        messages = _messages(incident, by_id, seen)
        rows.append(
            {
                "id": incident.id,
                "title": words("incident_title", title=lead["title"], n=len(members) - 1),
                "label": "likely",
                "first": local(incident.first, zone),
                "last": local(incident.last, zone),
                "records": sum(message["records"] for message in messages),
                "severity": lead["severity"],
                "themes": list(incident.themes),
                "messages": messages,
                "began_within_minutes": incident.began_within,
                "services": list(incident.places["service"]),
                "hosts": list(incident.places["host"]),
                "why": _why(incident, len(messages), words),
            }
        )
    return rows


def _messages(
    incident: Incident, themes: Mapping[str, Mapping[str, Any]], seen: Seen
) -> list[dict[str, Any]]:
    """What the records of an incident say, and how many say it, the most frequent first; what is
    rare beside that is left out. A theme whose records say too many things counts as one; one whose
    records all count for others has no message."""
    found: list[dict[str, Any]] = []
    for outbreak in incident.outbreaks:
        said = seen.messages.get(outbreak.theme, Names())
        counts = said.top(len(said.draws))
        if not said.exact:
            counts = [(themes[outbreak.theme]["title"], outbreak.records)]
        found += [{"theme": outbreak.theme, "text": t, "records": n} for t, n in counts]
    found.sort(key=lambda message: (-message["records"], message["text"]))
    return [m for m in found if m["records"] >= LEAST_PART * found[0]["records"]]


def _why(incident: Incident, messages: int, words: Words) -> str:
    """When and where its themes broke out, in a sentence."""
    field = next(field for field in FIELDS if incident.places[field])
    return words(
        f"incident_why_{field}",
        problems=len(incident.outbreaks),
        messages=messages,
        n=incident.began_within,
        names=words.enumerate(PurePosixPath(name).name for name in incident.places[field])
        if field == "source"
        else words.enumerate(incident.places[field]),
    )


def contradiction_rows(
    contradictions: Contradictions, seen: Seen, zone: ZoneInfo, line_of: LineOf | None
) -> list[dict[str, Any]]:
    """The section `contradictions`: the rules that found something."""
    rows = [
        {
            "rule": rule,
            "records": found.records,
            "evidence": [_piece(piece, zone, line_of) for piece in found.best.pieces()],
        }
        for rule, found in contradictions.by_rule().items()
    ]
    if seen.broken:
        pairs = [
            _piece(promise, zone, line_of) | {"counter": _counter(log, zone, line_of)}
            for promise, log in seen.pairs()
        ]
        rows.append({"rule": PROMISE, "records": seen.broken, "evidence": pairs})
    return rows


def _piece(piece: Piece, zone: ZoneInfo, line_of: LineOf | None) -> dict[str, Any]:
    return shown(piece, "further", zone, line_of)


def _counter(piece: Piece, zone: ZoneInfo, line_of: LineOf | None) -> dict[str, Any]:
    return {
        "record": piece.record,
        "source": piece.source,
        "line": line_of(piece.source, piece.position) if line_of else None,
        "time": local(piece.time, zone),
        "text": piece.text[:COUNTER_CHARS],
    }
