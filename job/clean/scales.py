"""Levels and ratings, in whatever notation a system writes them, on one scale each.

Invariant: what is not surely a level or a rating is None, and then stays in the text.
Sources: RFC 5424 (syslog severities 0 to 7), OpenTelemetry's log data model (1 to 24), Python's
`logging` (10 to 50), bunyan and pino (10 to 60).
"""

from __future__ import annotations

import re
from decimal import Decimal

_WORDS = {
    "debug": "trace debug verbose fine finer finest dbg 调试 跟踪",
    "info": "info information informational notice notification stats 信息 提示 通知",
    "warning": "warn warning 警告 告警 警示",
    "error": "error err severe failure 错误 异常 故障",
    "critical": "critical crit fatal alert emerg emergency panic 严重 致命 紧急",
}
LEVELS = {word: level for level, words in _WORDS.items() for word in words.split()}
"""A word in lower case -> debug, info, warning, error or critical."""

_SYSLOG = ("critical", "critical", "critical", "error", "warning", "info", "info", "debug")
_TENS = ("debug", "debug", "debug", "info", "warning", "error", "critical")
_PYTHON = ("debug", "debug", "info", "warning", "error", "critical")
_OPEN_TELEMETRY = ("debug", "debug", "info", "warning", "error", "critical")

_NUMBERS = range(61)

_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九十")}
_RATING = re.compile(
    r"\s*([0-9]{1,3}(?:\.[0-9]{1,4})?|[一二三四五六七八九十])\s*"
    r"(?:星级?|分|颗星|-?\s?stars?|/\s*[0-9]{1,3}|out of [0-9]{1,3})?\s*",
    re.IGNORECASE,
)
_STARS = re.compile(r"\s*([★⭐🌟]\ufe0f?){1,10}(?:[☆✩]\ufe0f?){0,10}\s*")


def level_of(value: object, name: str = "level") -> str | None:
    """The level that a field's value stands for. `name` is the field's, in lower-case letters: it
    tells the numbers of Python's `levelno` and of OpenTelemetry from the others."""
    if isinstance(value, str):
        word = value.strip().lower()
        if word.isascii() and word.isdigit():
            return _from_number(int(word), name) if len(word) <= 2 else None
        return LEVELS.get(word) or LEVELS.get(word.rstrip("0123456789"))
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return _from_number(int(value), name) if value in _NUMBERS else None


def _from_number(number: int, name: str) -> str | None:
    if name == "severitynumber":
        return _OPEN_TELEMETRY[(number - 1) // 4] if 1 <= number <= 24 else None
    if number <= 7:
        return _SYSLOG[number]
    if number % 10 or number > 60:
        return None
    scale = _PYTHON if name == "levelno" else _TENS
    return scale[number // 10] if number // 10 < len(scale) else None


def rating_of(value: object) -> float | None:
    """The rating that a field's value stands for, as a number on its own scale: `4`, "4.0", "4/5",
    "5星", "五星", "★★★★☆"."""
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, int | float):
        return float(value) if not isinstance(value, bool) and -1000 <= value <= 1000 else None
    if not isinstance(value, str) or len(value) > 40:
        return None
    if match := _RATING.fullmatch(value):
        return float(_DIGITS.get(match[1]) or match[1])
    if _STARS.fullmatch(value):
        return float(sum(value.count(star) for star in "★⭐🌟"))
    return None
