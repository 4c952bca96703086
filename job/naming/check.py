"""Whether a name given by the model says only what the model was given. Pure.

Invariant: a number passes only if it stands, whole, in the texts the model was shown of this very
theme, and what looks like an id only if those texts hold it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from job.instructions import Language
from job.naming.code_names import TITLE_CHARACTERS, ThemeInput
from job.text import language as language_of

_LANGUAGES: dict[Language, str] = {"zh": "Chinese", "en": "English"}

_DIGITS = re.compile(r"\d+")
_TOKEN = re.compile(r"<[^<>\s]{1,80}>|[A-Za-z0-9_]+(?:[-.:/@#][A-Za-z0-9_]+)*")
_LONGEST_TEXT = 600
"""Characters of any part of a name; two sentences were asked for."""


def check_name(theme: ThemeInput, name: Mapping[str, str], language: Language) -> list[str]:
    """What is wrong with the texts of `name` (title, summary, cause, action, severity_reason), in
    words the model can act on; empty if nothing is."""
    problems = [f"{field} is empty" for field in ("title", "summary") if not name[field]]
    if len(name["title"]) > TITLE_CHARACTERS:
        problems.append(f"title is longer than {TITLE_CHARACTERS} characters")
    problems += [f"{f} is too long" for f, text in name.items() if len(text) > _LONGEST_TEXT]
    if language_of(name["summary"]) in _LANGUAGES.keys() - {language}:
        problems.append(f"summary is not in {_LANGUAGES[language]}")
    given = _plain("\n".join(_texts(theme)))
    given_digits = set(_DIGITS.findall(given))
    squeezed = "".join(given.split())
    for field, text in name.items():
        plain = _plain(text)
        unknown = [d for d in _DIGITS.findall(plain) if d not in given_digits]
        unknown += [t for t in _TOKEN.findall(plain) if _like_id(t) and t not in squeezed]
        problems += [f"{field} says {what}, which no issue says" for what in dict.fromkeys(unknown)]
    return problems


def _texts(theme: ThemeInput) -> list[str]:
    return [
        text
        for issue in theme.shown
        for text in (issue.event, issue.cause, issue.suggestion)
        if text
    ]


def _like_id(token: str) -> bool:
    """An alias, or a word with an underscore or a digit in it; bare numbers are checked as such."""
    return token[0] == "<" or "_" in token or (not token.isdigit() and bool(_DIGITS.search(token)))


def _plain(text: str) -> str:
    """`text` without differences of width and case."""
    return unicodedata.normalize("NFKC", text).casefold()
