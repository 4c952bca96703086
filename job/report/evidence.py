"""Which records speak for a theme, and where in their files they stand.

Invariant: what is chosen depends on the totals alone; every quote is a part of its `text`, and
every `text` a part of its record's text.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from job.records import SEVERITIES
from job.reduce.pieces import EVIDENCE, Key, Piece, wording, worst_key
from job.reduce.totals import ThemeTotals

LineOf = Callable[[str, int], int | None]
"""The line (from 1) on which a position (byte offset) of a source stands, None where unknown."""

QUOTES = 3
"""A theme card shows this many quotes: the first, a typical and the worst record's."""
ROLES = ("first", "typical", "worst", "further", "same")
"""Why a piece was chosen, in the order of the report; `same` says what one before it says."""


def evidence(
    theme: ThemeTotals, zone: ZoneInfo, line_of: LineOf | None, limit: int = EVIDENCE
) -> list[dict[str, Any]]:
    """At most `limit` pieces of `theme` as they stand in report.json, the three quotes first."""
    return [shown(piece, role, zone, line_of) for role, piece in choose(theme)[:limit]]


def choose(theme: ThemeTotals) -> list[tuple[str, Piece]]:
    """The pieces to show, each with its role, the three quotes first.

    First, typical, worst (where it is worse than others); then those with words of their own, by
    severity and time; then others.
    """
    earliest = theme.earliest.pieces()
    worst, sample = theme.worst.pieces(), theme.sample.pieces()
    chosen: dict[str, tuple[str, Piece]] = {p.record: ("first", p) for p in earliest}
    said = {_words(p) for p in earliest}
    for role, piece in (
        ("worst", _outstanding(worst, sample)),
        ("typical", medoid([p for p in sample if _words(p) not in said])),
    ):
        if piece is not None and piece.record not in chosen:
            chosen[piece.record] = role, piece
            said.add(_words(piece))
    for piece in (*worst, *sample):
        if piece.record not in chosen:
            chosen[piece.record] = ("same" if _words(piece) in said else "further"), piece
            said.add(_words(piece))
    return sorted(chosen.values(), key=_order)[:EVIDENCE]


def _order(chosen: tuple[str, Piece]) -> tuple[int, Key]:
    role, piece = chosen
    return ROLES.index(role), worst_key(piece.severity, piece.time, piece.record)


def medoid(pieces: list[Piece]) -> Piece | None:
    """The piece that has most in common with all others (Jaccard of character pairs)."""
    pairs = [_pairs(f"{p.event} {_words(p)}") for p in pieces]
    likeness = [sum(len(a & b) / (len(a | b) or 1) for b in pairs) for a in pairs]
    return max(
        zip(pieces, likeness, strict=True),
        key=lambda item: (item[1], item[0].record),
        default=[None],
    )[0]


def _outstanding(worst: list[Piece], sample: list[Piece]) -> Piece | None:
    """The worst piece, where it is worse than any other."""
    ranks = {SEVERITIES.index(p.severity) for p in (*worst, *sample)}
    return worst[0] if len(ranks) > 1 else None


def _words(piece: Piece) -> str:
    return wording(piece.quote or piece.text)


def _pairs(text: str) -> set[str]:
    return {text[i : i + 2] for i in range(len(text) - 1)}


def shown(piece: Piece, role: str, zone: ZoneInfo, line_of: LineOf | None) -> dict[str, Any]:
    """A piece as it stands in report.json; its neighbours are filled in later."""
    return {
        "record": piece.record,
        "role": role,
        "source": piece.source,
        "position": piece.position,
        "line": line_of(piece.source, piece.position) if line_of else None,
        "time": local(piece.time, zone),
        "kind": piece.kind,
        "lang": piece.lang,
        "service": piece.service,
        "user": piece.user,
        "severity": piece.severity,
        "event": piece.event,
        "cause": piece.cause,
        "basis": piece.basis,
        "quote": piece.quote,
        "text": piece.text,
        "text_offset": piece.offset,
        "text_length": piece.length,
        "neighbours": {"before": [], "after": []},
    }


def local(time: int | None, zone: ZoneInfo) -> str | None:
    """A time (microseconds since 1970) as ISO 8601 in the report's zone, to the second."""
    if time is None:
        return None
    return datetime.fromtimestamp(time // 1_000_000, zone).isoformat()
