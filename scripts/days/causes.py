"""The planted causes and what users praised: their wordings, as data under `words/`.

Invariant: every cause has at least six wordings in each language for each kind of record it
appears in, and a record made from a wording holds that wording's phrase.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import yaml

from job.records import KINDS, Kind

Lang = Literal["zh", "en"]
LANGS: tuple[Lang, ...] = ("zh", "en")
WORDS = Path(__file__).parent / "words"

_FRAGMENT = re.compile(r"[A-Za-z\u4e00-\u9fff]+(?: +[A-Za-z\u4e00-\u9fff]+)*")
_SLOT = re.compile(r"\{\w+\}")
_HAN_WEIGHT = 3
"""A Han character says about as much as three letters."""


@dataclass(frozen=True, slots=True)
class Wording:
    """One way to say it. Templates hold `{slots}`.

    `texts`: user and assistant turn of a conversation; the line of a log; a feedback. For logs
    `service`, `level` and, outermost first, the exceptions of a `java` or `python` stack trace.
    """

    texts: tuple[str, ...]
    service: str = ""
    level: str = "ERROR"
    java: tuple[str, ...] = ()
    python: tuple[str, ...] = ()

    @property
    def phrase(self) -> str:
        """The longest run of plain words in the texts: what tells this wording from all others."""
        plain = [_SLOT.sub("\n", text) for text in self.texts]
        runs: list[str] = [run for text in plain for run in _FRAGMENT.findall(text)]
        return max(runs, key=_weight)


def _weight(run: str) -> int:
    return sum(_HAN_WEIGHT if char >= "\u4e00" else 1 for char in run)


@dataclass(frozen=True, slots=True)
class Topic:
    """A planted cause (`problem`) or something praised (`positive`).

    `share`: percent of the records of its outcome; `hours`: when it mostly happens, UTC;
    `answers`: how a model would put it, rows of the provider's truth file.
    """

    name: str
    outcome: Literal["problem", "positive"]
    share: float
    severity: str
    hours: tuple[int, ...]
    wordings: dict[Kind, dict[Lang, tuple[Wording, ...]]]
    answers: tuple[dict[str, str], ...]

    def phrases(self) -> list[str]:
        """The phrase of every wording, each once."""
        found = {w.phrase: None for by in self.wordings.values() for ws in by.values() for w in ws}
        return list(found)


def read_words(name: str) -> Any:
    """The content of a YAML file under `words/`."""
    return yaml.safe_load((WORDS / name).read_text(encoding="utf-8"))


def wordings_of(raw: dict[str, Any], kind: Kind) -> dict[Lang, tuple[Wording, ...]]:
    """The wordings of one kind of record, by language."""
    return {lang: tuple(_wording(item) for item in raw[kind][lang]) for lang in LANGS}


def _wording(item: str | list[str] | dict[str, Any]) -> Wording:
    if isinstance(item, str):
        return Wording((item,))
    if isinstance(item, list):
        return Wording(tuple(item))
    return Wording(
        (item["line"],),
        item["service"],
        item.get("level", "ERROR"),
        tuple(item.get("java", ())),
        tuple(item.get("python", ())),
    )


def _topic(raw: dict[str, Any], outcome: Literal["problem", "positive"]) -> Topic:
    kinds = [kind for kind in KINDS if kind in raw]
    return Topic(
        name=raw["name"],
        outcome=outcome,
        share=raw["share"],
        severity=raw.get("severity", "info"),
        hours=tuple(raw.get("hours", ())),
        wordings={kind: wordings_of(raw, kind) for kind in kinds},
        answers=tuple(raw["answers"]),
    )


@lru_cache(maxsize=1)
def load_causes() -> tuple[Topic, ...]:
    """The twelve planted causes, the most frequent first."""
    paths = sorted((WORDS / "causes").glob("*.yaml"))
    topics = [_topic(read_words(f"causes/{path.name}"), "problem") for path in paths]
    return tuple(sorted(topics, key=lambda t: (-t.share, t.name)))


@lru_cache(maxsize=1)
def load_praise() -> tuple[Topic, ...]:
    """What users praised, the most frequent first."""
    return tuple(_topic(raw, "positive") for raw in read_words("praise.yaml"))
