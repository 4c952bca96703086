"""A question as words: what each is, what it does, and whether it names something.

Invariant: nothing of a question is lost but punctuation and letter case, and neither is in what is
quoted or follows a colon or a line's end: that is text to work on, and counts to the letter.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from serve.cache.agreement import chinese, english, numbers
from serve.cache.agreement.tables import is_strict

_CJK = r"\u3400-\u9fff"
_LETTER = rf"[^\W\d{_CJK}]"
_INNER = rf"[^\W{_CJK}]"
_TOKEN = re.compile(
    rf"""(?P<quote>```.+?```|`[^`]+`|"[^"]+"|“[^”]+”|«[^»]+»|「[^」]+」|『[^』]+』|《[^》]+》
          |‘[^’]+’|(?<![^\s(])'[^']+'(?!\w))
      |(?P<number>\d+(?:[.,:/-]\d+)*)
      |(?P<chinese>[{_CJK}]+)
      |(?P<latin>[.@/]?{_LETTER}{_INNER}*(?:[-./'’@&_]+{_INNER}+)*[+\#]*)
      |(?P<data>[:：\n])
      |(?P<silent>[\s.,;?!，。？！；、…·()（）\[\]{{}}—–_\-/|\\&]+|["'`“”‘’«»「」『』《》])
      |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
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


class Words(NamedTuple):
    """The words of a question, and what follows its first colon or line, to the letter."""

    words: list[Word]
    data: str


def read_words(text: str) -> Words:
    """`text` as words."""
    text = text.strip()
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    if "-" in text or " / " in text or " & " in text:
        text = _SIGNED.sub(lambda found: "−" if found[0] == "-" else "÷", text)
    words: list[Word] = []
    data, start = "", True
    mixed = _has_chinese(text)
    for found in _TOKEN.finditer(text):
        kind, token = found.lastgroup, found[0]
        if kind == "silent":
            start = start or not _SENTENCE_ENDS.isdisjoint(token)
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
        elif kind == "data":
            data = _to_the_letter(text[found.end() :])
            if data:
                break
        else:
            words.append(Word(token, token, True))
        start = False
    if not data and any(word.meaning in TEXTUAL for word in words):
        if not any(word.meaning.startswith('"') for word in words):
            words = [word if word.meaning else Word(word.text, word.text, True) for word in words]
    return Words(words, data)


def _has_chinese(text: str) -> bool:
    return not text.isascii() and any("\u3400" <= letter <= "\u9fff" for letter in text)


def _to_the_letter(text: str) -> str:
    return " ".join(text.split()).strip(" .。,，\"'“”‘’`「」")


def _add_latin(words: list[Word], token: str, start: bool, mixed: bool) -> None:
    lower = token.lower().replace("’", "'")
    if mixed:
        words.append(Word(lower, lower, True))
        return
    capital = token[0].isupper() and not start and token != "I" and not token.startswith("I'")
    inner = token[1:] != lower[1:] or not lower.replace("'", "").replace("-", "").isalpha()
    if capital or inner:
        base = lower.removesuffix("'s")
        known = english.meaning(base) if base.isalpha() else base
        words.append(Word(base, known or base, True))
        return
    for part in lower.split("-"):
        if part:
            _add_english(words, part)


def _add_english(words: list[Word], word: str) -> None:
    """Add `word`; where it ends a phrase, in place of the phrase."""
    scale = numbers.SCALES.get(word)
    if word in numbers.ENGLISH or scale is not None:
        _add_number(words, word, scale)
        return
    for size in (3, 2):
        if len(words) < size - 1:
            continue
        parts = [each.text for each in words[-(size - 1) :]] + [word]
        phrase = " ".join(parts)
        if phrase.split(" ", 1)[0] in english.PHRASE_STARTS:
            meaning = english.MEANINGS.get(phrase)
            if meaning is not None:
                del words[-(size - 1) :]
                words.append(Word(phrase, meaning, is_strict(meaning)))
                return
    meaning = english.meaning(word)
    words.append(Word(word, meaning, is_strict(meaning)))


def _add_number(words: list[Word], word: str, scale: int | None) -> None:
    last = words[-1] if words else None
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
    for word, meaning in chinese.words(run):
        last = words[-1] if words else None
        if meaning != "#":
            words.append(Word(word, meaning, is_strict(meaning)))
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
