"""A question as words: what each is, what it does, and whether it names something.

Invariant: nothing of a question is lost but punctuation and letter case, and neither is in what is
quoted or follows a colon or a line's end: that is text to work on, and counts to the letter.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from serve.cache.agreement import chinese, english, numbers
from serve.cache.agreement.tables import FRAME, is_strict

_CJK = r"\u3400-\u9fff"
_LETTER = rf"[^\W\d{_CJK}]"
_INNER = rf"[^\W{_CJK}]"
_TOKEN = re.compile(
    rf"""(?P<latin>[.@/]?{_LETTER}{_INNER}*(?:[-./'’@&]+{_INNER}+)*[+\#]*)
      |(?P<space>[\s.,;?!，。？！；、…·()（）\[\]{{}}—–_\-/|\\&]+)
      |(?P<quote>```.+?```|`[^`]+`|"[^"]+"|“[^”]+”|«[^»]+»|「[^」]+」|『[^』]+』|《[^》]+》
          |‘[^’]+’|(?<![^\s(])'[^']+'(?!\w))
      |(?P<number>\d+(?:[.,:/-]\d+)*)
      |(?P<chinese>[{_CJK}]+)
      |(?P<data>:)
      |(?P<mark>["'`“”‘’«»「」『』《》])
      |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_NARROW = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
"""Full-width forms of ASCII. Other forms stay: x² is not x2."""
_JOINTS = str.maketrans("", "", "'-")
_ITSELF = "="
"""Before what begins with a character that marks a meaning elsewhere (@name, #)."""
_SENTENCE_ENDS = frozenset(".?!;。？！；…")
_SIGNED = re.compile(r"(?<=\s)[-/&](?=\s)|(?<![^\s(=,])-(?=\d)")
TEXTUAL = frozenset(("translate", "rewrit", "proofread", "paraphras", "classify", "rephras", "润"))
"""What is done to a text. Where none is quoted or follows a colon, it stands among the words, and
each of them counts."""


class Word(NamedTuple):
    """`text`: as written, in lower case; `meaning`: see `english.py`, "#n" for the number n;
    `strict`: it names something, so that a question without it is another one."""

    text: str
    meaning: str
    strict: bool


_CAPITAL = frozenset(("i", "i'm", "i'd", "i'll", "i've"))
_YES = Word("", "?yes", True)


class Words(NamedTuple):
    """The words of a question, and what follows its first colon or line, to the letter."""

    words: list[Word]
    data: str


def read_words(text: str) -> Words:
    """`text` as words."""
    text = text.strip()
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).translate(_NARROW)
    if "-" in text or " / " in text or " & " in text:
        text = _SIGNED.sub(lambda found: "−" if found[0] == "-" else "÷", text)
    words: list[Word] = []
    data, start = "", True
    mixed = _has_chinese(text)
    for found in _TOKEN.finditer(text):
        kind, token = found.lastgroup, found[0]
        if kind == "space" and "\n" not in token:
            start = start or not _SENTENCE_ENDS.isdisjoint(token)
            continue
        if kind == "mark":
            continue
        if kind == "latin":
            _add_latin(words, token, start, mixed)
        elif kind == "chinese":
            _add_chinese(words, token)
        elif kind == "number":
            words.extend(Word(value, "#" + value, True) for value in numbers.digits(token))
        elif kind == "quote":
            quoted = _to_the_letter(token[1:-1])
            words.append(Word(quoted, '"' + quoted, True))
        elif kind == "data" or kind == "space":
            data = _to_the_letter(text[found.end() :])
            if data:
                break
        else:
            words.append(Word(token, _ITSELF + token, True))
        start = False
    meanings = {word.meaning for word in words}
    within = not data and not any(meaning.startswith('"') for meaning in meanings)
    if within and not TEXTUAL.isdisjoint(meanings):
        words = [word if word.meaning else Word(word.text, word.text, True) for word in words]
    return Words(words, data)


def _has_chinese(text: str) -> bool:
    return not text.isascii() and any("\u3400" <= letter <= "\u9fff" for letter in text)


def _to_the_letter(text: str) -> str:
    return " ".join(text.split()).strip(" .。,，\"'“”‘’`「」")


def _add_latin(words: list[Word], token: str, start: bool, mixed: bool) -> None:
    if mixed:
        lower = token.lower()
        words.append(Word(lower, lower if lower[0].isalpha() else _ITSELF + lower, True))
        return
    if token.islower() and token.isalpha():
        _add_english(words, token, start)
        return
    lower = token.lower().replace("’", "'")
    capital = token[0].isupper() and not start and lower not in _CAPITAL
    if capital or token[1:] != lower[1:] or not lower.translate(_JOINTS).isalpha():
        base = lower.removesuffix("'s")
        known = english.meaning(base) if base[0].isalpha() else _ITSELF + base
        words.append(Word(base, known or base, True))
        return
    for part in lower.split("-"):
        if part:
            _add_english(words, part, start)


def _add_english(words: list[Word], word: str, start: bool) -> None:
    """Add `word`; where it ends a phrase, in place of the phrase."""
    if word in numbers.ENGLISH or word in numbers.SCALES:
        _add_number(words, word)
        return
    if start:
        if word in english.AUXILIARIES:
            words.append(_YES)
    else:
        for size in (2, 1):
            if len(words) >= size:
                before = " ".join([each.text for each in words[-size:]])
                if before in english.STARTS and (phrase := f"{before} {word}") in english.PHRASES:
                    del words[-size:]
                    if words and words[-1] is _YES:
                        words.pop()
                    words.extend(_plain(phrase))
                    return
    found = _plain(word)
    if found[0].meaning.startswith(FRAME):
        asks = start or words[-1].text in english.REQUESTS
        found = (Word(word, found[0].meaning[1:] if asks else english.stem(word), False),)
    elif word.endswith("ing") and words and words[-1].text in ("a", "an"):
        found = (Word(word, word, False),)  # a drawing is not to draw
    words.extend(found)


@lru_cache(maxsize=8_192)
def _plain(word: str) -> tuple[Word, ...]:
    return _with(word, english.meaning(word))


def _with(word: str, meaning: str) -> tuple[Word, ...]:
    """`word` once for each part of its meaning, with its text in the last."""
    *more, last = meaning.split("|")
    return (*(Word("", each, is_strict(each)) for each in more), Word(word, last, is_strict(last)))


def _add_number(words: list[Word], word: str) -> None:
    last = words[-1] if words else None
    scale = numbers.SCALES.get(word)
    if last and last.meaning.startswith("#"):
        if scale and last.text[0].isdigit():
            value = numbers.scaled(last.meaning[1:], scale)
            words[-1] = Word(value, "#" + value, True)
            return
        run = [*last.text.split(), word]
        if last.text[0].isalpha() and (scale or run[-2] in numbers.SCALES or _is_ten(run[-2])):
            words[-1] = Word(" ".join(run), "#" + numbers.english(run), True)
            return
    elif last and last.text in ("one", "a") and scale:
        words[-1] = Word(f"one {word}", "#" + numbers.english(["one", word]), True)
        return
    if word == "one":
        words.append(Word(word, "", False))
    else:
        words.append(Word(word, "#" + numbers.english([word]), True))


def _is_ten(word: str) -> bool:
    return numbers.ENGLISH.get(word, 0) >= 20


def _add_chinese(words: list[Word], run: str) -> None:
    for word, meaning in chinese.words(run, bool(words) and words[-1].text.isascii()):
        last = words[-1] if words else None
        if meaning != "#":
            words.extend(_with(word, meaning))
        elif last and last.meaning.startswith("#") and last.text[0].isdigit() and _scale(word):
            value = numbers.scaled(last.meaning[1:], _scale(word))
            words[-1] = Word(value, "#" + value, True)
        else:
            words.append(Word(word, "#" + numbers.chinese(word), True))


def _scale(numeral: str) -> int:
    scale = 1
    for letter in numeral:
        scale *= numbers.SCALES.get(letter, 0)
    return scale
