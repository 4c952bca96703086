"""The words of an event or a cause: a clause made short. Pure.

Invariant: it is what the record says with less around it (no greeting, alias, id, named field),
never a word more.
"""

from __future__ import annotations

import re

from job.extractive.grammar import Grammar
from job.extractive.spans import fold, size
from job.mask.masking import ALIAS

LONGEST = 160
"""Characters of an event or cause: a clause, not a paragraph."""
LOOKED_AT = 4 * LONGEST
"""Characters of a clause that are looked at: some patterns take time by the square."""

_NOISE = re.compile(
    ALIAS.pattern + r"|\b[0-9a-f]{8}-[0-9a-f-]{20,}\b|\b0x[0-9a-f]+\b|"
    r"(?<![a-z0-9])[a-z]{1,4}-?\d{4,}(?![a-z0-9])|"
    r"#\s?\d+|\[(?=[^\]]*[\d_])[^\]\s]*\]|\b(?=\w*\d)(?=\w*[a-z])[a-z0-9]+(?:_[a-z0-9]+){2,}\b|"
    r"(?<![\d.,:])\d{4,}(?![\d.,:]*\d|ms|\s?(?:ms|kb|mb|gb|%|元|毫秒))|\b(?=[a-f]*\d)[0-9a-f]{12,}\b",
    re.IGNORECASE,
)
_NAMED_END = re.compile(
    r"[\s,，、;；]+(?:(?:by|for|from|in|of|on|to) )?"
    r"(?:user|order|session|request|ticket|用户|订单|会话|请求|工单)[\s:：#]*"
    rf"(?:{_NOISE.pattern})$",
    re.IGNORECASE,
)
"""An id at the end goes with the word that names it, which would say nothing alone."""
_FIELDS = re.compile(r"[\s,]+[\w.]+\s?=(?!=).*$", re.DOTALL)
_CLASS = re.compile(
    r"^(?:(?:[a-z_$][\w$]*\.)+[\w$]+|\w+(?:exception|error)):\s+(?=\S+\s+\S|[\u4e00-\u9fff])",
    re.IGNORECASE,
)
_HOLE = "\0"
_PREPOSITION = r"\b(?:for|from|of|to|in|on|at|by|with|the)\s+"
_NAMES = r"(?:user|order|session|request|ticket|用户|订单|会话|请求|工单)"
_HOLES = (
    (re.compile(r"[(（]\s*\0\s*[)）]"), ""),
    (re.compile(r"\0\s*[(（][^()（）\0]{1,30}[)）]"), "\0"),
    (re.compile(rf"[,，;；]\s*{_NAMES}\s*\0\s*(?=[,，;；]|$)", re.IGNORECASE), ""),
    (re.compile(rf"{_PREPOSITION}\0\s+(?={_PREPOSITION})", re.IGNORECASE), ""),
    (re.compile(rf"\s+{_PREPOSITION}\0\s*(?=[,:;，：；])", re.IGNORECASE), ""),
    (re.compile(r"\s*[:：#]\s*\0\s*(?:-\s+)?"), " "),
    (re.compile(r"(?<=[\u4e00-\u9fff])\s*\0\s*(?=[\u4e00-\u9fff（，。])"), ""),
    (re.compile(r"\s*\0(?=\s*[,:;，：；](?:\s|$))"), ""),
    (re.compile(r"\0"), ""),
    (re.compile(r"\s+(?=[:,;](?:\s|$))"), ""),
)
"""What an id leaves behind: the word before it that needs it goes as well, and so does what stands
in brackets behind it and tells of that one case."""
_DATA = re.compile(r"(?:\s+[\w.]+:)?\s*[\[{<]\w[\w ]{0,30}:\s.*$", re.DOTALL)
"""Structures as programs print them: `Container: [ContainerId: ..., NodeId: ...`."""
_UNCLOSED = re.compile(r"\s+(?:[\[{(（]|<(?=[a-z]))[^\]})）>]*$", re.IGNORECASE)
"""A bracket whose end was cut off with the rest of its clause: `less than <memory:1024`."""
_TWICE = re.compile(r"\b(for|of|to|in|on|at|from|with|the|[a-z]{3,}) \1\b", re.IGNORECASE)
_CUT = ((_CLASS, ""), (_FIELDS, ""), (_DATA, ""), (_UNCLOSED, ""), (_NAMED_END, ""))
_SPACE = re.compile(r"\s+|\\n")
_EDGE = " \t,;:.!?，；：。！？、~～-–—()（）\"'“”|"


def tidy(part: str, rules: tuple[Grammar, ...]) -> str:
    """`part` without greetings, fillers, aliases and ids, as long as something remains."""
    part = _SPACE.sub(" ", part[:LOOKED_AT].replace(_HOLE, " ")).strip(_EDGE)
    for pattern, instead in _CUT:
        part = _shorter(part, pattern.sub(instead, part))
    bare = _NOISE.sub(_HOLE, part)
    for pattern, instead in (*_HOLES, (_TWICE, r"\1")):
        bare = pattern.sub(instead, bare)
    part = _shorter(part, bare)
    for rule in rules:
        for _ in range(6):
            match = rule.leading.match(fold(part))
            if match is None or not match.end() or size(part[match.end() :]) < 4:
                break
            part = part[match.end() :].lstrip(_EDGE)
        match = rule.trailing.search(fold(part))
        if match is not None and size(part[: match.start()]) >= 4:
            part = part[: match.start()].rstrip(_EDGE)
    if len(part) > LONGEST:
        cut = part.rfind(" ", LONGEST // 2, LONGEST)
        part = part[: cut if cut > 0 else LONGEST].rstrip(_EDGE) + "…"
    return part


def _shorter(part: str, bare: str) -> str:
    """`bare`, unless next to nothing remains in it."""
    return _SPACE.sub(" ", bare).strip(_EDGE) if size(bare) >= 4 else part
