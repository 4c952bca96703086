"""Chinese words: their meanings from `chinese.txt`; whatever that does not know, by character.

Invariant: Chinese writes no spaces, so a run of characters is read from left to right, the longest
word that the table knows first; every character is in exactly one word.
"""

from __future__ import annotations

from collections.abc import Iterator

from serve.cache.agreement.tables import read_table

_TABLE = read_table("chinese.txt")
LONGEST = max(map(len, _TABLE))
"""Characters of the longest word."""
DIGITS = "零〇一二三四五六七八九十百千万亿两半"
_PLACES = frozenset("上下")
"""Characters that say no more than "in" behind a name (Linux 上, Linux 下)."""
_ORDINAL = frozenset("第周期拜")
"""Characters behind which even a lone 一 counts (第一, 周一, 星期一, 礼拜一)."""


def words(run: str, after_name: bool = False) -> Iterator[tuple[str, str]]:
    """The words of a run of Chinese characters and their meanings; a numeral's meaning is "#".
    `after_name`: it follows a Latin word."""
    at, end = 0, len(run)
    if after_name and run[0] in _PLACES:
        yield run[0], ""
        at = 1
    while at < end:
        for size in range(min(LONGEST, end - at), 1, -1):
            word = run[at : at + size]
            found = _TABLE.get(word)
            if found is not None:
                yield word, found
                at += size
                break
        else:
            first = run[at]
            if first in DIGITS:
                stop = at + 1
                while stop < end and run[stop] in DIGITS:
                    stop += 1
                word = run[at:stop]
                lone = word == "一" and (at == 0 or run[at - 1] not in _ORDINAL)
                yield word, "" if lone else "#"
                at = stop
                continue
            if run[at + 1 : at + 2] in ("不", "没") and run[at + 2 : at + 3] == first:
                yield run[at : at + 3], f"?yes|{_TABLE.get(first) or first}"  # 去不去: asks
                at += 3
                continue
            yield first, _TABLE.get(first, first)
            at += 1
