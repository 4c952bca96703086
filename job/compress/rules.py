"""A text of instructions <-> its rules. Pure.

Invariant: the pieces of a text, one after the other, are the text, to the last character; what is
no rule (headings, tables, code, blank lines, the marks of lists) is never changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from serve.ask import tokens

LEAST_TOKENS = 8
"""A rule of fewer has nothing to spare."""
MOST_CHARACTERS = 1000
"""A rule of more is a text of its own, that nobody can check at a glance."""

_FENCE = re.compile(r"\s*(?:```|~~~)")
_MARK = re.compile(
    r"\A\s*(?:(?:[-*+•·‣◦–—>]|[(（]?\d{1,3}[)）.．、](?!\d)|[①-⑳]|[(（]?[一二三四五六七八九十]{1,3}[)）、]"
    r"|[(（]?[A-Za-z][)）.](?=\s)|\[[ xX]\](?=\s))\s*)*"
)
"""White space and the marks that a line of a list begins with."""
_NO_RULE = re.compile(r"\s*(?:[#|{}\]<]|\[(?![ xX]\]))|.*[:：]\s*$|\s*$", re.DOTALL)
"""Headings, tables, JSON, markup, a blank line."""
_INDENTED = ("    ", "\t")
"""Begins a line of code, where it does not go on with the line before."""
_SENTENCE_END = re.compile(
    r"[。！？]+[”」』）)]*\s*|[.!?]+[\"”')）]*(?:\s+(?=[A-Z0-9\"“'(]|[一-鿿])|$)"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|incl|no|mr|mrs|dr|st|fig)|\b[A-Z])$", re.I
)
_OPEN_END = re.compile(r"[^.!?。！？;；:：]\s*$")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text; `rule`: it is one, and worth shortening."""

    text: str
    rule: bool = False

    @property
    def line(self) -> str:
        """The rule in one line."""
        return " ".join(self.text.split())


def split(text: str) -> list[Piece]:
    """The pieces of `text`: rules are sentences and items of lists."""
    pieces: list[Piece] = []
    for mark, body in _paragraphs(text):
        pieces.append(Piece(mark))
        done = 0
        for end in _sentence_ends(body):
            pieces += [Piece(body[done : end.start()], rule=True), Piece(end[0])]
            done = end.end()
        pieces.append(Piece(body[done:], rule=True))
    return [Piece(each.text, each.rule and _is_worth_it(each.text)) for each in pieces if each.text]


def _is_worth_it(rule: str) -> bool:
    return len(rule) <= MOST_CHARACTERS and tokens.count(rule) >= LEAST_TOKENS


def join(pieces: Sequence[Piece], short: Mapping[int, str]) -> str:
    """The text of `pieces`, where `short` gives others for some of them, by their place."""
    return "".join(short.get(place, piece.text) for place, piece in enumerate(pieces))


def _paragraphs(text: str) -> list[tuple[str, str]]:
    """(What is no rule, rules) in turns: a line each, with the lines that only go on with it."""
    found: list[tuple[str, str]] = []
    fenced, open_ended = False, False
    for line in text.splitlines(keepends=True):
        fence = _FENCE.match(line) is not None
        mark = line[: len(line) - len(_MARK.sub("", line, count=1))]
        code = line.startswith(_INDENTED) and not mark.strip() and not open_ended
        if fence or fenced or code or _NO_RULE.match(line):
            fenced = fenced != fence
            found.append((line, ""))
            open_ended = False
            continue
        body = line[len(mark) :]
        content = body.rstrip()
        end = body[len(content) :]
        if open_ended and not mark.strip() and content[0].islower():
            (before, so_far), (gap, _) = found[-2:]
            found[-2:] = [(before, so_far + gap + mark + content), (end, "")]
        else:
            found += [(mark, content), (end, "")]
        open_ended = _OPEN_END.search(content) is not None
    return found


def _sentence_ends(body: str) -> list[re.Match[str]]:
    return [
        end
        for end in _SENTENCE_END.finditer(body)
        if not (body[end.start()] == "." and _ABBREVIATION.search(body[: end.start()]))
    ]
