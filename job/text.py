"""Any text as it is kept: composed, without what no reader sees, and in which language.

Invariant: nothing is cut; what is taken out or replaced is named by a flag, and what comes out can
be encoded as UTF-8.
"""

from __future__ import annotations

import re
import unicodedata

from job.words import holds_any

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
_ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]"
)
"""One of these is in every text that the expressions above would change."""
_BEFORE_LINE_END = (" \n", "\t\n", "\u3000\n", "\xa0\n")

_ASCII = re.compile("[\x00-\x7f]+")
_ASCII_NO_LETTERS = bytes(c for c in range(128) if not chr(c).isalpha())
_CJK = re.compile("[㐀-䶿一-鿿豈-﫿\U00020000-\U0003ffff]+")
_KANA_OR_HANGUL = re.compile("[\u3040-\u30ff\uac00-\ud7af]")
_LATIN = re.compile("[\u00c0-\u024f]")
_ZH_SHARE = 0.2
"""Of the letters: one Chinese character says about as much as three Latin letters."""


def normalise(text: str) -> tuple[str, tuple[str, ...]]:
    """`text` composed (NFC), with "\\n" as the only line end, control characters replaced by a
    space, invisible ones removed, and no white space at the ends of lines; and flags for what was
    odd: `ansi`, `lone_surrogate`, `zero_width`, `control`."""
    if text.isascii() and text.isprintable():
        return text.strip(" "), ()
    flags: tuple[str, ...] = ()
    if _ODD.search(text):
        text, flags = _without_odd(text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if holds_any(text, _BEFORE_LINE_END):
        text = "\n".join(map(str.rstrip, text.split("\n")))
    return text.strip(), flags


def _without_odd(text: str) -> tuple[str, tuple[str, ...]]:
    flags = []
    text, found = _ANSI.subn("", text)
    flags += ["ansi"] * bool(found)
    text = _LINE_ENDS.sub("\n", text)
    text, found = _SURROGATE.subn("\ufffd", text)
    flags += ["lone_surrogate"] * bool(found)
    text, found = _ZERO_WIDTH.subn("", text)
    flags += ["zero_width"] * bool(found)
    text, found = _CONTROL.subn(" ", text)
    flags += ["control"] * bool(found)
    return text, tuple(flags)


def language(text: str) -> str:
    """ "zh" where Chinese characters are a good share of the letters, "en" where Latin letters are
    most of them, else "other" (Japanese and Korean too)."""
    if text.isascii():
        return "en" if any(map(str.isalpha, text)) else "other"
    latin = len(text.encode("ascii", "ignore").translate(None, _ASCII_NO_LETTERS))
    beyond_ascii = _ASCII.sub("", text)
    others = _CJK.sub("", beyond_ascii)
    chinese = len(beyond_ascii) - len(others)
    letters = latin + chinese + sum(map(str.isalpha, others))
    if letters and chinese >= _ZH_SHARE * letters:
        return "zh" if len(_KANA_OR_HANGUL.findall(others)) < chinese / 4 else "other"
    latin += len(_LATIN.findall(others))
    return "en" if latin > letters / 2 else "other"
