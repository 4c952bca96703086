"""What of a rule must stand in its short form, word for word: numbers with their units, quoted
terms, names, identifiers, outcomes and severities. Pure.

Invariant: a number is one whatever its notation (five, 5, 五; 1,000 and 1000; 30 seconds, 30 s,
30 秒), and two with different units are two.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from job.compress.deciding import BOUNDS, deciding
from job.records import OUTCOMES, SEVERITIES
from job.words import listed

_SMALL = listed(
    "zero, one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen",
    "fourteen, fifteen, sixteen, seventeen, eighteen, nineteen, twenty",
)
_NUMBER_WORDS: Mapping[str, str] = {
    **{word: str(n) for n, word in enumerate(_SMALL)},
    **{word: str(10 * n) for n, word in enumerate(listed("thirty, forty, fifty, sixty"), 3)},
    "once": "1 times",
    "twice": "2 times",
    "thrice": "3 times",
    "half": "0.5",
    "dozen": "12",
    "hundred": "100",
    "thousand": "1000",
    "million": "1000000",
}
_NUMBER_WORD = re.compile(
    rf"\b(?<!no\s)(?<!any)(?<!some)(?:{'|'.join(_NUMBER_WORDS)})\b(?!\s+(?:of|another|by|who|that)\b)",
    re.ASCII,
)
_DIGITS = "零一二三四五六七八九"
_TENS: Mapping[str, int] = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "亿": 100_000_000}
_COUNTED = (
    "次|天|日|小时|分钟|秒|条|遍|倍|周|月|年|成|位|人|元|级|项|种|台|名|起|笔|行|轮|回|个|号|字"
)
_CHINESE_NUMBER = re.compile(
    rf"(?<![统唯万专不进])(?!一[个些种样直般])([零〇一二两三四五六七八九十百千万亿]+)(?=(?:{_COUNTED}))"
)
_PERCENT = re.compile(r"百分之\s*([零〇一二两三四五六七八九十百\d.]+)")

_UNITS: Mapping[str, str] = {
    word: unit
    for unit, words in {
        "ms": "ms, msec, millisecond, milliseconds, 毫秒",
        "s": "s, sec, secs, second, seconds, 秒, 秒钟",
        "min": "min, mins, minute, minutes, 分钟",
        "h": "h, hr, hrs, hour, hours, 小时, 钟头",
        "d": "d, day, days, 天",
        "weeks": "w, week, weeks, 周, 星期",
        "months": "month, months, 个月",
        "years": "year, years, 年",
        "%": "%, percent, per cent, pct",
        "times": "x, times, time, 次, 遍",
        "fold": "fold, 倍",
        "kb": "kb, kib",
        "mb": "mb, mib",
        "gb": "gb, gib",
        "usd": "usd, dollar, dollars, $",
        "cny": "cny, rmb, yuan, 元, ¥",
        "eur": "eur, euro, euros, €",
        "am": "am, a.m",
        "pm": "pm, p.m",
    }.items()
    for word in listed(words)
}
_UNIT = "|".join(re.escape(word) for word in sorted(_UNITS, key=len, reverse=True))
MEASURE = re.compile(
    rf"(?P<money>[$¥€])?\s*(?<![A-Za-z0-9_.])(?P<sign>[-+](?=\d))?(?P<n>\d+(?:[.:]\d+)*)"
    rf"(?:[ -]?(?P<unit>{_UNIT})(?![A-Za-z]))?"
)
"""A number with its sign and unit, as `plain` writes it."""
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")

_CLOSE = re.compile(r"[^\d,;.，；。、]{0,12}")
"""What may stand between a bound and the number it bounds."""

_QUOTED = re.compile(
    r'"([^"\n]+)"|“([^”\n]+)”|‘([^’\n]+)’|「([^」\n]+)」|『([^』\n]+)』|《([^》\n]+)》|`([^`\n]+)`'
    r"|(?<![\w'])'([^'\n]+)'(?!\w)"
)
_TOKEN = re.compile(r"[A-Za-z0-9_]+(?:[-.:/@#\\]+[A-Za-z0-9_]+)*")
_LIKE_ID = re.compile(r"_|\d|[a-z][A-Z]|[A-Za-z0-9][.:/@#\\]+[A-Za-z0-9]")
_CAPITALS = re.compile(r"[A-Z]{2,}")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;。！？：；\n(（“\"'-])\s*$")

_GRADE_WORDS: Mapping[str, str] = {
    **{grade: grade for grade in (*OUTCOMES, *SEVERITIES)},
    **dict.fromkeys(("problems", "问题"), "problem"),
    **dict.fromkeys(("表扬", "称赞", "正面"), "positive"),
    **dict.fromkeys(("不明", "看不出"), "unclear"),
    "正常": "normal",
    "高": "high",
    "中": "medium",
    "低": "low",
    **{word: word for word in ("严重", "致命", "紧急", "轻微", "中等", "高危", "severe", "urgent")},
}
GRADE = re.compile(
    rf"\b(?:{'|'.join(word for word in _GRADE_WORDS if word.isascii())})\b"
    rf"|{'|'.join(word for word in _GRADE_WORDS if len(word) > 1 and not word.isascii())}"
    r"|[高中低](?=$|[\s，。；、,;.)）”」]|级|等|危|风险|优先)",
    re.ASCII,  # a word of English ends where Chinese begins
)
"""An outcome or a severity, in lower case."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a rule says word for word. `numbers`: all, in their order; `grades`: each once, in the
    order in which they first come; `terms`: quoted; `names`: in capital letters, and what looks
    like code."""

    numbers: tuple[str, ...]
    grades: tuple[str, ...]
    terms: tuple[str, ...]
    names: tuple[str, ...]


def facts(text: str) -> Facts:
    """What `text` says word for word."""
    wide = unicodedata.normalize("NFKC", text)
    return Facts(
        tuple(_numbers(wide)),
        tuple(dict.fromkeys(_GRADE_WORDS[match[0]] for match in GRADE.finditer(wide.lower()))),
        tuple(
            dict.fromkeys(next(filter(None, m.groups())).strip() for m in _QUOTED.finditer(wide))
        ),
        tuple(dict.fromkeys(_names(wide))),
    )


def plain(text: str) -> str:
    """`text` in lower case, of one width, its numbers in digits."""
    text = unicodedata.normalize("NFKC", text).lower()
    text = _PERCENT.sub(lambda match: f" {_value(match[1])}% ", text)
    text = _CHINESE_NUMBER.sub(lambda match: f" {_value(match[1])} ", text)
    text = _NUMBER_WORD.sub(lambda match: _NUMBER_WORDS[match[0]], text)
    return _THOUSANDS.sub("", text)


def _numbers(text: str) -> list[str]:
    """The numbers, each with its unit and what bounds it: `≥ 3 times`."""
    found = []
    text = plain(text)
    bounds = [(BOUNDS[name], m) for name, m in deciding(text) if name in BOUNDS]
    for match in MEASURE.finditer(text):
        unit = _UNITS.get(match["unit"] or "") or _UNITS.get(match["money"] or "")
        number = match["n"].lstrip("0") or "0"
        sign = "-" if match["sign"] == "-" else ""
        bound = next((name for name, m in bounds if _bounds(text, m, match)), None)
        found.append(" ".join(filter(None, (bound, sign + number, unit))))
    return found


def _bounds(text: str, bound: re.Match[str], number: re.Match[str]) -> bool:
    """Whether one of the other: close before the number, or behind its unit."""
    before = text[bound.end() : number.start("n")]
    behind = text[number.end() : bound.start()]
    return (bound.end() <= number.start("n") and _CLOSE.fullmatch(before) is not None) or (
        bound.start() >= number.end() and behind.strip() in ("", "的", "及")
    )


def _value(chinese: str) -> str:
    """A Chinese number in digits."""
    if any(c.isdigit() and c.isascii() for c in chinese):
        return chinese
    chinese = chinese.replace("两", "二").replace("〇", "零")
    if not any(c in _TENS for c in chinese):
        return "".join(str(_DIGITS.index(c)) for c in chinese)
    total = section = digit = 0
    for character in chinese:
        if character in _DIGITS:
            digit = _DIGITS.index(character)
        elif _TENS[character] < 10_000:
            section += (digit or 1) * _TENS[character]
            digit = 0
        else:
            total += (section + digit or 1) * _TENS[character]
            section = digit = 0
    return str(total + section + digit)


def _names(text: str) -> list[str]:
    """Identifiers, and words that are written with a capital where no sentence begins."""
    found = []
    for match in _TOKEN.finditer(text):
        word = match[0]
        if not any(map(str.isalpha, word)):
            continue
        capital = word[0].isupper() and not _SENTENCE_START.search(text, 0, match.start())
        if _LIKE_ID.search(word) or capital or _CAPITALS.search(word):
            found.append(word)
    return found
