"""An answer <-> the bytes kept in the store. Pure.

Invariant: what was stored is found again only under equal instructions, model, language and mode;
a recalled answer quotes the record it is recalled for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Protocol

import orjson

from job.instructions import Language, undated
from job.pack.packing import Mode
from job.quotes import align_quote
from job.records import Answer, Issue, Record
from serve.ask.answers import answer_key
from serve.ask.contract import CONTRACT_VERSION


class Store(Protocol):
    """The store of answers, awaited (`serve.ask.answers_actor.RayAnswers`)."""

    async def get_many(
        self, keys: Sequence[bytes], since: float | None = None
    ) -> dict[bytes, bytes]:
        """Those of `keys` that are stored, and were so since `since` (None: ever)."""
        ...

    async def put_many(self, items: Sequence[tuple[bytes, bytes]], replace: bool = False) -> None:
        """Store `items`; returns when they are safe."""
        ...


@dataclass(frozen=True, slots=True)
class AskSettings:
    """How the records of a run are asked. `own`: the user's own instructions, as they are sent.
    `tiers`: the models that share the work, from the cheapest to the most powerful; `model` is then
    their names together. `since`: recall only answers stored since then (seconds since the epoch),
    those of this very run where it asks anew; None: all."""

    model: str
    language: Language
    mode: Mode = "packed"
    since: float | None = None
    own: str = ""
    tiers: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Those that are asked, from the cheapest to the most powerful."""
        return self.tiers or (self.model,)

    @property
    def best_model(self) -> str:
        """The most powerful of the models."""
        return self.models[-1]


@dataclass(frozen=True, slots=True)
class Stored:
    """What is kept of one answered record. `model`: the one that answered, as it calls itself."""

    answer: Answer
    review: bool
    model: str


def record_key(record: Record, settings: AskSettings) -> bytes:
    """Under what the answer to `record` is kept."""
    language = settings.language
    instructions = undated(record.kind, language, record.lane, own=settings.own)
    version = f"analyse-{CONTRACT_VERSION}"
    return answer_key(version, record.digest, instructions, settings.model, language, settings.mode)


def encode(stored: Stored) -> bytes:
    """The bytes to keep."""
    return orjson.dumps(asdict(stored))


def decode(value: bytes) -> Stored | None:
    """The inverse of `encode`; None for bytes that are no stored answer (a damaged store)."""
    try:
        data = orjson.loads(value)
        answer = data["answer"]
        issues = tuple(Issue(**issue) for issue in answer["issues"])
        judged = Answer(answer["outcome"], issues, tuple(answer["flags"]))
        return Stored(judged, data["review"], data["model"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None


def for_record(answer: Answer, text: str) -> Answer:
    """`answer` with every quote aligned to `text`, or null: the answer may have been given to
    another record that says the same."""
    issues = tuple(
        replace(
            issue, quote=align_quote(issue.quote, text, numbers_vary=True) if issue.quote else None
        )
        for issue in answer.issues
    )
    return replace(answer, issues=issues)
