"""What was found -> the JSON of an answer: where it stands, an excerpt, what in it was asked for.

Invariant: an excerpt is a part of its document's text as it is, never HTML; highlights are places
in it, in Unicode characters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from serve.ask.judgement import SEVERITIES
from serve.search.catalog import IndexedRun
from serve.search.documents import KINDS, NONE, UNTIMED, WHATS
from serve.search.segment import Segment
from serve.search.view import Found, View
from serve.search.words import asked_words, words_at

EXCERPT = 240
"""Characters of an excerpt."""
LEAD = 40
"""Of these, before the first word that was asked for."""
LOOKED_AT = 20_000
"""Characters of a text in which the best place is looked for."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def shown(view: View, found: Sequence[Found], query: str) -> list[dict[str, Any]]:
    """The hits of an answer."""
    asked = frozenset(asked_words(query))
    return [_hit(view.runs[each.run], view.segments[each.run], each, asked) for each in found]


def _hit(run: IndexedRun, segment: Segment, found: Found, asked: frozenset[str]) -> dict[str, Any]:
    document = segment.documents.slice(found.document, 1)
    # Arrow trusts where a text begins and ends, and it is read from a file at this moment.
    document.validate(full=True)
    row = document.to_pylist()[0]
    what = WHATS[row["what"]]
    text, start, marks = excerpt(row["text"], asked)
    themes = [segment.themes[n] for n in segment.theme_numbers(found.document)]
    anchor = f"#{themes[0]['id']}" if themes else ""
    return {
        "object": what,
        "id": row["id"],
        "run": run.run.id,
        "score": round(found.score, 6),
        "ranks": found.ranks,
        "excerpt": text,
        "highlights": marks,
        "cut": {"before": start > 0, "after": start + len(text) < len(row["text"])},
        "source": None if row["source"] == NONE else segment.sources[row["source"]],
        "position": None if row["position"] == NONE else row["position"],
        "time": None if row["time"] == UNTIMED else _time(row["time"]),
        "kind": None if row["kind"] == NONE else KINDS[row["kind"]],
        "outcome": row["outcome"],
        "severity": _highest(row["severities"]),
        "themes": [{"id": theme["id"], "title": theme["title"]} for theme in themes],
        "like": found.like,
        "report": f"/v1/reports/{run.run.id}{anchor}",
    }


def _time(microseconds: int) -> str:
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()


def _highest(bits: int) -> str | None:
    return SEVERITIES[int(bits).bit_length() - 1] if bits else None


def excerpt(text: str, asked: frozenset[str]) -> tuple[str, int, list[list[int]]]:
    """The part of `text` that has most of the words that were asked for, where it begins, and where
    in it they stand. Pure."""
    marks = sorted(
        (start, end, word) for word, start, end in words_at(text[:LOOKED_AT]) if word in asked
    )
    begin = max(0, _densest(marks) - LEAD)
    if len(text) <= EXCERPT:
        begin = 0
    begin = min(begin, max(0, len(text) - EXCERPT))
    end = min(len(text), begin + EXCERPT)
    inside = [(a - begin, b - begin) for a, b, _ in marks if a >= begin and b <= end]
    return text[begin:end], begin, _merged(inside)


def _densest(marks: Sequence[tuple[int, int, str]]) -> int:
    """Where the piece begins that has the most different words."""
    best, at, last = 0, 0, 0
    inside: Counter[str] = Counter()
    for start, _, word in marks:
        while last < len(marks) and marks[last][1] <= start + EXCERPT - LEAD:
            inside[marks[last][2]] += 1
            last += 1
        if len(inside) > best:
            best, at = len(inside), start
        inside[word] -= 1
        if inside[word] <= 0:
            del inside[word]
    return at


def _merged(marks: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Places that touch or overlap as one: pairs of Chinese characters do."""
    merged: list[list[int]] = []
    for start, end in sorted(marks):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged
