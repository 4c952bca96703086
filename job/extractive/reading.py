"""A record under analysis and its clauses. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from job.extractive.grammar import Grammar
from job.extractive.spans import clauses, sentences, size
from job.extractive.tone import Tone, tone
from job.extractive.wording import tidy
from job.instructions import Language
from job.mask.masking import ALIAS
from job.records import Record

Span = tuple[int, int]

LEAST_SAID = 4
"""The `size` (two words, four characters) of what is left where "they say" is cut off."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A record under analysis; `low` is its text in lower case, of the same length."""

    record: Record
    low: str
    rules: tuple[Grammar, ...]
    language: Language

    @property
    def text(self) -> str:
        """The record's text."""
        return self.record.text

    def words(self, span: Span) -> str:
        """The words of a span, made short."""
        return tidy(self.text[slice(*span)], self.rules)

    def reason(self, span: Span) -> str:
        """The words of a span that is a cause: without who says so."""
        for rule in self.rules:
            match = rule.saying.match(self.low, *span)
            if match is not None and size(self.low[match.end() : span[1]]) >= LEAST_SAID:
                span = match.end(), span[1]
        return self.words(span)

    def tells(self, clause: Clause) -> int:
        """How long the clause's sentence is: of several without a sign, the longest tells most. One
        with an alias gives an address, not a complaint."""
        start, end = clause.sentence
        return 0 if ALIAS.search(self.text, start, end) else end - start

    def turns(self, span: Span) -> bool:
        """Whether the span begins with a "but" or an "also"."""
        return any(
            rule.contrast.match(self.low, *span) or rule.addition.match(self.low, *span)
            for rule in self.rules
        )


class Clause(NamedTuple):
    """A clause, the sentence it stands in, and how it is meant."""

    start: int
    end: int
    sentence: Span
    tone: Tone

    @property
    def span(self) -> Span:
        """Where it stands."""
        return self.start, self.end


def read_clauses(low: str, spans: Iterable[Span], rules: tuple[Grammar, ...]) -> list[Clause]:
    """All clauses of the spans with their tones. `low` may have parts blanked out."""
    return [
        Clause(*span, sentence, tone(low, *span, rules))
        for start, end in spans
        for sentence in sentences(low, start, end)
        for span in clauses(low, *sentence, rules)
    ]


def worst_of(found: Sequence[Clause]) -> Clause:
    """The clause that tells most of trouble: about a thing before a feeling, then the first."""
    return max(found, key=lambda c: (max(c.tone[:2]), c.tone.failure, c.tone.mood))
