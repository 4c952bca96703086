"""A record too big for a pack -> parts with overlap -> one answer. Pure.

Invariant: the parts cover the text without a gap, so every span of up to `OVERLAP_SHARE` of a part
stands whole in at least one of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from job.pack.packing import Fit, Item, make_item
from job.records import SEVERITIES, Answer, Issue, Outcome
from serve.ask import tokens

MAX_PARTS = 32
"""Above, the record fails as `too_large` (DESIGN 3)."""
OVERLAP_SHARE = 0.05
"""Of a part that is repeated at the start of the next."""
MAX_ISSUES = 8
"""Of a merged answer, the gravest kept: a long record repeats itself."""

_WEIGHT: dict[Outcome, int] = {"unclear": 0, "normal": 1, "positive": 2, "problem": 3}


def split_item(item: Item, fit: Fit) -> list[Item] | None:
    """`item` in parts of the biggest size that fits, or of half its own where that size was found
    too big; None where that takes more than MAX_PARTS."""
    most = fit.max_part(item.record.kind)
    size = most if item.line_tokens > most else item.line_tokens // 2
    overhead = item.line_tokens - tokens.count(item.text)
    parts = split_text(item.text, size - overhead)
    if parts is None:
        return None
    pieces = [make_item(item.record, part, (*item.part, n)) for n, part in enumerate(parts)]
    for piece in pieces:
        piece.rounds, piece.tier = item.rounds, item.tier
    return pieces


def split_text(text: str, part_tokens: int) -> list[str] | None:
    """`text` in parts of at most `part_tokens`, cut at line ends or spaces where there are any near
    the cut; None if that takes more than MAX_PARTS, or one character is too much."""
    if part_tokens < 1:
        return None
    total = tokens.count(text)
    size = max(1, math.floor(len(text) * part_tokens / max(total, 1) * 0.9))
    while True:
        parts = _cut(text, size)
        if len(parts) > MAX_PARTS:
            return None
        biggest = max(tokens.count(part) for part in parts)
        if biggest <= part_tokens:
            return parts
        if size == 1:
            return None
        size = max(1, math.floor(size * part_tokens / biggest * 0.95))


def _cut(text: str, size: int) -> list[str]:
    overlap = math.floor(size * OVERLAP_SHARE)
    parts: list[str] = []
    start = 0
    while len(parts) <= MAX_PARTS:
        end = start + size
        if end >= len(text):
            parts.append(text[start:])
            break
        for mark in ("\n", "。", " "):
            near = text.rfind(mark, start + size * 3 // 4, end)
            if near >= 0:
                end = near + 1
                break
        parts.append(text[start:end])
        start = max(end - overlap, start + 1)
    return parts


def merge_answers(answers: Sequence[Answer]) -> Answer:
    """One answer for the record: the gravest outcome, the issues of the parts that have it, each
    event and cause once."""
    outcome = max((answer.outcome for answer in answers), key=_WEIGHT.__getitem__)
    issues: dict[tuple[str, str | None], Issue] = {}
    for answer in answers:
        if answer.outcome == outcome:
            for issue in answer.issues:
                issues.setdefault((issue.event, issue.cause), issue)
    ranked = sorted(issues.values(), key=lambda issue: -SEVERITIES.index(issue.severity))
    limit = 1 if outcome == "positive" else MAX_ISSUES
    flags = {flag for answer in answers for flag in answer.flags}
    return Answer(outcome, tuple(ranked[:limit]), tuple(sorted(flags)))
