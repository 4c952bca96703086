"""Where turns, sentences and clauses begin and end. Pure.

Invariant: a span is a pair of positions in the record's own text, without white space at its
ends; `low` is that text in lower case with the same length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from job.extractive.chinese import GRAMMAR as CHINESE
from job.extractive.english import GRAMMAR as ENGLISH
from job.extractive.grammar import Grammar, words
from job.words import lowered

_HAN = re.compile(r"[\u3400-\u9fff]")
_WORD = re.compile(r"[^\W\d_\u3400-\u9fff][\w'-]*")
_LATIN = re.compile(r"[a-z]{2}")

_END = re.compile(
    r"[。！？!?…]+[\"'”』」)）]*|\n+|\\n(?=[\W_\u3400-\u9fff]|$)|\.{2,}|[;；](?=\s|[\u3400-\u9fff])"
    r"|\.[\"')\]]*(?=\s|$)|(?<=[\u3400-\u9fff])\.(?=[\u3400-\u9fff])"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|mrs?|ms|drs?|prof|st|vs|etc|no|nos|approx|fig|inc|ltd|dept|est|jr|sr|a\.m|p\.m)"
    r"|\b[a-z])$"
)
_DASH = re.compile(r"\s+[-–—]+\s+|—{2,}")

_USER = words(
    """
    user human customer client guest caller visitor patient student me
    用户 客户 顾客 买家 访客 患者 学生 家长 我
    """
)
_ASSISTANT = words(
    """
    assistant agent bot ai gpt chatgpt system support operator model action tool
    客服 助手 机器人 商家 卖家 坐席 系统 店家
    """
)
_TURN = re.compile(rf"^[\[(]?(?:(?P<u>{_USER})|{_ASSISTANT})\b[\])]?\s*[:：]\s*", re.MULTILINE)


class Turn(NamedTuple):
    """What one side says at one go."""

    user: bool
    start: int
    end: int


def fold(text: str) -> str:
    """`text` in lower case, straight apostrophes, and of the same length."""
    return lowered(text).replace("\u2019", "'")


def grammars(low: str) -> tuple[Grammar, ...]:
    """The languages whose letters stand in the text; the one with more to say first."""
    if not _HAN.search(low):
        return (ENGLISH,)
    return (CHINESE, ENGLISH) if _LATIN.search(low) else (CHINESE,)


def trim(text: str, start: int, end: int, without: str = "") -> tuple[int, int]:
    """The span without white space (and the characters `without`) at its ends."""
    part = text[start:end]
    left = len(part) - len(part.lstrip(without + " \t\r\n\u3000" if without else None))
    kept = part.strip(without + " \t\r\n\u3000" if without else None)
    return start + left, start + left + len(kept)


def turns(low: str) -> list[Turn]:
    """The turns of a conversation; where no roles are written all of it is the user's."""
    marks = list(_TURN.finditer(low))
    if not marks:
        return [Turn(True, 0, len(low))]
    ends = [mark.start() for mark in marks[1:]] + [len(low)]
    return [
        Turn(mark["u"] is not None, *trim(low, mark.end(), end))
        for mark, end in zip(marks, ends, strict=True)
    ]


def sentences(low: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The sentences of a span. Decimals, versions, file and class names are not cut."""
    begin = start
    for match in _END.finditer(low, start, end):
        if match[0][0] == "." and _ABBREVIATION.search(
            low, max(begin, match.start() - 8), match.start()
        ):
            continue
        span = trim(low, begin, match.end())
        if span[0] < span[1]:
            yield span
        begin = match.end()
    span = trim(low, begin, end)
    if span[0] < span[1]:
        yield span


def clauses(low: str, start: int, end: int, rules: tuple[Grammar, ...]) -> list[tuple[int, int]]:
    """The clauses of a sentence, in order; together they cover it."""
    cuts = {start, end}
    for pattern in (_DASH, *(rule.comma for rule in rules)):
        cuts.update(match.end() for match in pattern.finditer(low, start, end))
    for rule in rules:
        cuts.update(match.start() for match in rule.contrast.finditer(low, start, end))
    edges = sorted(cuts)
    spans = (trim(low, a, b, ",，;；") for a, b in pairwise(edges))
    return [span for span in spans if span[0] < span[1]]


def size(part: str) -> int:
    """How much a piece of text says: Chinese characters, and two for a word of other letters."""
    return len(_HAN.findall(part)) + 2 * len(_WORD.findall(part))
