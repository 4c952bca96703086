"""Numbers as values: 1,200 and 1200, twelve and 十二 and 12, 100 万 and 1 million are the same.

Invariant: equal spellings have equal values; a spelling that is not understood stands for itself.
A version keeps its digits (3.10 is not 3.1).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from serve.cache.agreement.tables import read_table

_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
ENGLISH = {word: int(value) for word, value in read_table("numbers.txt").items()}
"""Number words below a hundred and their values."""
SCALES = {
    "hundred": 100,
    "thousand": 1_000,
    "million": 10**6,
    "billion": 10**9,
    "百": 100,
    "千": 1_000,
    "万": 10**4,
    "亿": 10**8,
}
_CHINESE = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_CHINESE_SCALES = {"十": 10, "百": 100, "千": 1_000, "万": 10**4, "亿": 10**8}


def digits(spelling: str) -> list[str]:
    """The values of a spelling in digits: one, or those of a date, a time or a range in order
    (2024-05-06, 8:30, 3-5)."""
    if spelling.isdecimal():
        return [_plain(spelling)]
    if _THOUSANDS.fullmatch(spelling):
        return [_plain(spelling.replace(",", ""))]
    return [_plain(part) for part in re.split(r"[-:/,]", spelling)]


def scaled(value: str, scale: int) -> str:
    """`value` times `scale`."""
    whole, _, fraction = value.partition(".")
    places = len(str(scale)) - 1
    if not (whole + fraction).isdecimal() or len(fraction) > places:
        return f"{value}x{scale}"
    return _plain(whole + fraction.ljust(places, "0"))


def english(words: Sequence[str]) -> str:
    """The value of a run of number words (two hundred and five: 205)."""
    total = part = 0
    for word in words:
        scale = SCALES.get(word)
        if scale is None:
            part += ENGLISH.get(word, 0)
        elif scale == 100:
            part = (part or 1) * scale
        else:
            total += (part or 1) * scale
            part = 0
    return str(total + part)


def chinese(numeral: str) -> str:
    """The value of a Chinese numeral (一万两千: 12000, 二〇二四: 2024, 半: 0.5)."""
    if "半" in numeral:
        return "0.5" if numeral == "半" else numeral
    if len(numeral) > 1 and all(letter in _CHINESE for letter in numeral):
        return _plain("".join(str(_CHINESE[letter]) for letter in numeral))
    total = section = part = 0
    scale = 1
    for letter in numeral:
        if letter in _CHINESE:
            part = _CHINESE[letter]
            continue
        scale = _CHINESE_SCALES[letter]
        if scale >= 10**4:
            total = (
                (total + section + part or 1) * scale
                if scale == 10**8
                else total + (section + part or 1) * scale
            )
            section = part = 0
        else:
            section += (part or 1) * scale
            part = 0
    if part and scale >= 100 and "零" not in numeral and numeral[-2:-1] not in ("", "十"):
        part *= scale // 10  # 两千五 is 2500
    return str(total + section + part)


def _plain(number: str) -> str:
    """Without zeros in front."""
    return number.lstrip("0") or "0" if number.isdecimal() else number
