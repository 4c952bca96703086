"""Any text as it is kept: composed, without what no reader sees, and in which language.

Invariant: nothing is cut; what is taken out or replaced is named by a flag, and what comes out can
be encoded as UTF-8.
"""

from __future__ import annotations

import re
import unicodedata

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b\n]{0,500}(?:\x07|\x1b\\)|[@-Z\\-_])"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ZERO_WIDTH = re.compile(
    "[\u180e\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]"
    "|\u200d(?![\u2190-\u2bff\U0001f000-\U0001faff])"
)
"""Invisible characters; a joiner inside an emoji stays, or the emoji would fall apart."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LINE_ENDS = re.compile("\r\n|[\r\x85\u2028\u2029]")
_TRAILING = re.compile(r"[^\S\n]+(?=\n)")

_CJK = re.compile("[㐀-䶿一-鿿豈-﫿\U00020000-\U0003ffff]+")
_KANA_OR_HANGUL = re.compile("[\u3040-\u30ff\uac00-\ud7af]+")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_ZH_SHARE = 0.2
"""Of the letters: one Chinese character says about as much as three Latin letters."""


def normalise(text: str) -> tuple[str, tuple[str, ...]]:
    """`text` composed (NFC), with "\\n" as the only line end, control characters replaced by a
    space, invisible ones removed, and no white space at the ends of lines; and flags for what was
    odd: `ansi`, `lone_surrogate`, `zero_width`, `control`."""
    if text.isascii() and text.isprintable():
        return text.strip(" "), ()
    flags = []
    if "\x1b" in text:
        text, found = _ANSI.subn("", text)
        flags += ["ansi"] * bool(found)
    text = _LINE_ENDS.sub("\n", text)
    if not text.isascii():
        text, found = _SURROGATE.subn("\ufffd", text)
        flags += ["lone_surrogate"] * bool(found)
        text, found = _ZERO_WIDTH.subn("", text)
        flags += ["zero_width"] * bool(found)
        text = unicodedata.normalize("NFC", text)
    text, found = _CONTROL.subn(" ", text)
    flags += ["control"] * bool(found)
    return _TRAILING.sub("", text).strip(), tuple(flags)


def language(text: str) -> str:
    """ "zh" where Chinese characters are a good share of the letters, "en" where Latin letters are
    most of them, else "other" (Japanese and Korean too)."""
    if text.isascii():
        return "en" if any(map(str.isalpha, text)) else "other"
    letters = _length(_LETTERS, text)
    chinese = _length(_CJK, text)
    if letters and chinese >= _ZH_SHARE * letters:
        return "zh" if _length(_KANA_OR_HANGUL, text) < chinese / 4 else "other"
    return "en" if letters and _length(_LATIN, text) > letters / 2 else "other"


def _length(pattern: re.Pattern[str], text: str) -> int:
    return sum(map(len, pattern.findall(text)))
