"""The truth file: which phrase in a record means what, and how a model would word it.

Invariant: what is said of a record depends on its text and the language asked for alone, so the
same record gets the same answer however often and in whatever company it is asked about.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Lang = Literal["zh", "en"]
Text = Annotated[str, Field(min_length=1)]

_NAMED_LANGUAGE = re.compile(
    r"\b(?:answer|write|reply|respond|output)\b[^.\n]{0,60}?\b(?P<en>English|Chinese)\b"
    r"|(?:用|以|使用)(?:简体)?(?P<zh>中文|汉语|英文|英语)",
    re.IGNORECASE,
)
_HAN = re.compile(r"[\u4e00-\u9fff]")
_MOSTLY_HAN = 0.3
"""Share of Han characters from which a text that names no language is taken as Chinese."""
_WRONG_QUOTE = 40
"""Characters that a wrong answer quotes."""


class Wording(BaseModel):
    """One way to word the answer; `lang` None fits every language."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lang: Lang | None = None
    event: Text
    cause: Text | None = None
    suggestion: Text | None = None


class Cause(BaseModel):
    """What a record that holds one of `phrases` is about.

    `severity` None: medium for a problem, info for anything else.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Text
    phrases: tuple[Text, ...] = Field(min_length=1)
    outcome: Literal["problem", "normal", "positive", "unclear"] = "problem"
    severity: Literal["info", "low", "medium", "high", "critical"] | None = None
    basis: Literal["stated", "inferred"] = "stated"
    answers: tuple[Wording, ...] = ()

    @model_validator(mode="after")
    def _says_enough(self) -> Self:
        if self.outcome in ("problem", "positive") and not self.answers:
            raise ValueError(f"cause {self.name!r}: a {self.outcome} needs a wording in `answers`")
        if self.outcome == "problem" and not all(w.cause and w.suggestion for w in self.answers):
            raise ValueError(f"cause {self.name!r}: a problem needs a cause and a suggestion")
        return self


class Default(BaseModel):
    """What is said of a record that holds no phrase; it has no issues."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    outcome: Literal["normal", "unclear"] = "normal"


class Truth(BaseModel):
    """A truth file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    causes: tuple[Cause, ...] = ()
    default: Default = Default()


def load_truth(path: Path) -> Truth:
    """Read a truth file (JSON, UTF-8). Raises OSError, or pydantic's ValidationError (a
    ValueError) that names the field."""
    return Truth.model_validate_json(path.read_bytes())


def language_asked_for(system: str) -> Lang | None:
    """The language a system prompt asks for, None where it cannot be told.

    An instruction that names one decides; without one, a prompt mostly in Chinese asks for it.
    """
    named = _NAMED_LANGUAGE.search(system)
    if named:
        word = (named["en"] or named["zh"]).lower()
        return "zh" if word in ("chinese", "中文", "汉语") else "en"
    letters = [c for c in system if c.isalpha()]
    share = sum(1 for c in letters if _HAN.match(c)) / len(letters) if letters else 0.0
    return "zh" if share >= _MOSTLY_HAN else None


def _choose(cause: Cause, text: str, lang: Lang | None) -> Wording:
    """One of the wordings that fit `lang` (of all where none does), by a hash of the text."""
    fitting = [w for w in cause.answers if lang is None or w.lang in (lang, None)]
    pool = fitting or cause.answers
    digest = hashlib.sha256(f"{cause.name}\0{text}".encode(errors="surrogatepass")).digest()
    return pool[int.from_bytes(digest[:8]) % len(pool)]


def _issue(cause: Cause, text: str, lang: Lang | None, quote: str | None) -> dict[str, Any]:
    wording = _choose(cause, text, lang)
    return {
        "event": wording.event,
        "cause": wording.cause,
        "basis": cause.basis,
        "suggestion": wording.suggestion,
        "severity": cause.severity or ("medium" if cause.outcome == "problem" else "info"),
        "quote": quote,
    }


def answer_for(truth: Truth, text: str, lang: Lang | None) -> dict[str, Any]:
    """`{"outcome", "issues"}` for a record's text: one issue for each cause that has a phrase in
    it, in the order of the file; the first such cause decides the outcome. The quote is the
    phrase."""
    outcome: str = truth.default.outcome
    issues: list[dict[str, Any]] = []
    found = False
    for cause in truth.causes:
        phrase = next((p for p in cause.phrases if p in text), None)
        if phrase is None:
            continue
        if not found:
            outcome, found = cause.outcome, True
        if cause.answers:
            issues.append(_issue(cause, text, lang, phrase))
    return {"outcome": outcome, "issues": issues}


def wrong_answer_for(truth: Truth, text: str, lang: Lang | None) -> dict[str, Any]:
    """`{"outcome", "issues"}` that fit a record of another cause, its quote from this text: what
    a model says that mixes records up. Where the file has no other cause, the outcome alone is
    wrong, and there are no issues."""
    others = [c for c in truth.causes if c.answers and not any(p in text for p in c.phrases)]
    if not others:
        right = answer_for(truth, text, lang)["outcome"]
        return {"outcome": "unclear" if right == "normal" else "normal", "issues": []}
    digest = hashlib.sha256(f"wrong\0{text}".encode(errors="surrogatepass")).digest()
    other = others[int.from_bytes(digest[:8]) % len(others)]
    issue = _issue(other, text, lang, text[:_WRONG_QUOTE].strip() or None)
    return {"outcome": other.outcome, "issues": [issue]}
