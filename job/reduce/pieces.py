"""One record as evidence for something, and the choice of the best pieces among many.

Invariant: what is chosen follows from the pieces' keys alone, which end in the record's id, never
from the order in which they came; every quote is a part of its piece's text, and every text a part
of its record's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from job.records import SEVERITIES

EVIDENCE = 20
"""Pieces of evidence kept and shown for a theme; every one is in `evidence.csv`."""
TEXT_CHARS = 1_000
"""Of a record's text, at most this many characters around the quote are kept as evidence."""
QUOTE_CHARS = 400
"""A longer quote is kept by its first characters, so that it always fits into the text kept."""
Key = tuple[int, int, str]
"""What pieces are chosen by, smallest first; ends in the record's id."""

_DIGITS = re.compile(r"\d+")
_NO_TIME = 1 << 63
_RANK: dict[str, int] = {severity: rank for rank, severity in enumerate(SEVERITIES)}


@dataclass(frozen=True, slots=True)
class Piece:
    """One record as evidence for one theme.

    `time` is in microseconds since 1970 UTC. `text` is a part of the record's text that holds the
    quote, `offset` characters after its beginning; the whole has `length` characters.
    """

    record: str
    source: str
    position: int
    time: int | None
    kind: str
    lang: str
    service: str | None
    user: str | None
    severity: str
    event: str
    cause: str | None
    basis: str
    quote: str | None
    text: str
    offset: int
    length: int


def wording(words: str) -> str:
    """`words` without their numbers: what makes two pieces say the same."""
    return _DIGITS.sub("0", words)


def time_key(time: int | None) -> int:
    """`time` (microseconds) as a part of a Key: unknown times come last."""
    return _NO_TIME if time is None else time


def worst_key(severity: str, time: int | None, record: str) -> Key:
    """Orders pieces by severity, then time: the worst, and of equals the earliest, first."""
    return -_RANK[severity], time_key(time), record


@dataclass(slots=True)
class Best:
    """The `size` pieces with the smallest keys, of each group only its smallest.

    Until `trim` up to twice as many are kept, so that sorting is rare.
    """

    size: int
    kept: dict[str, tuple[Key, Piece]] = field(default_factory=dict)
    _bound: Key | None = field(default=None, compare=False)

    def wants(self, key: Key) -> bool:
        """Whether a piece with this key can still be one of them, by what is known so far."""
        return self._bound is None or key < self._bound

    def offer(self, key: Key, group: str, piece: Piece) -> None:
        """Keep `piece` if it may be one of them."""
        known = self.kept.get(group)
        if not self.wants(key) or (known is not None and known[0] <= key):
            return
        self.kept[group] = key, piece
        if len(self.kept) >= 2 * self.size:
            self.trim()

    def trim(self) -> None:
        """Forget all but the best `size`."""
        if len(self.kept) > self.size:
            best = sorted(self.kept.items(), key=lambda item: item[1][0])[: self.size]
            self._bound = best[-1][1][0]
            self.kept = dict(best)

    def absorb(self, other: Best) -> None:
        """Add what `other` kept."""
        for group, (key, piece) in other.kept.items():
            self.offer(key, group, piece)
        self.trim()

    def pieces(self) -> list[Piece]:
        """What is kept, best first."""
        self.trim()
        return [piece for _, piece in sorted(self.kept.values(), key=lambda item: item[0])]


def excerpt(text: str, quote: str | None) -> tuple[str, int]:
    """A part of `text` that holds `quote`, and how many characters after the beginning it starts.

    At most `TEXT_CHARS` characters, a third of the room before the quote.
    """
    if len(text) <= TEXT_CHARS:
        return text, 0
    at = text.find(quote) if quote else 0
    room = TEXT_CHARS - len(quote or "")
    start = max(0, min(at - room // 3, len(text) - TEXT_CHARS))
    return text[start : start + TEXT_CHARS], start


def make_piece(
    row: Mapping[str, Any], issue: Mapping[str, Any], quote: str | None, severity: str
) -> Piece:
    """`row` (of RESULT_SCHEMA, time in microseconds) as evidence of `issue`, which may be empty.
    `quote` is a part of its text."""
    quote = quote[:QUOTE_CHARS] if quote else None
    text, offset = excerpt(row["text"], quote)
    return Piece(
        record=row["id"],
        source=row["source"],
        position=row["position"],
        time=row["time"],
        kind=row["kind"],
        lang=row["lang"],
        service=row["service"],
        user=row["user"],
        severity=severity,
        event=issue.get("event") or "",
        cause=issue.get("cause"),
        basis=issue.get("basis") or "inferred",
        quote=quote,
        text=text,
        offset=offset,
        length=len(row["text"]),
    )
