"""How many tokens answers will take: as earlier runs saw, or as far as the built-in analyst can
tell. Pure.

Where no run has asked this model yet, the built-in analyst says of each record how many problems it
holds or what is praised in it, and each of these is counted as an issue of ordinary length in the
language of the answers. Its own words are not counted: it quotes whole sentences where a model is
told to be short.

Invariant: the guess of a record depends on the records before it only above EACH of its kind and
lane, from where on one in EVERY is looked at and the others are counted as their mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from job import extractive
from job.estimates.moments import Moments
from job.estimates.reserve import KindLane
from job.instructions import Language
from job.records import Answer, Record

EACH = 500
EVERY = 20
"""The built-in analyst looks at some 2,000 records a second: a plan of a million records must not
take minutes for this."""
RESULT_TOKENS = 14
"""Of an answer without issues on the wire."""
ISSUE_TOKENS: dict[Language, tuple[int, int]] = {"en": (51, 40), "zh": (71, 50)}
"""Of an issue of a problem, and of praise, on the wire: its frame, an event, a suggestion and a
quote of as many tokens as the events of `themes/calibration.jsonl` have on average (8.1 English,
13.1 Chinese), and a cause (7.1, 11.1). Praise has neither cause nor suggestion."""
FEWEST = 10
"""Answers of a kind and lane from which on earlier runs are believed."""
GUESS_SPREAD = 0.2
"""How far the guess is off as a rule, as a share: it was 0, 3, 13 and 43 % on four sets."""
RUN_SPREAD = 0.05
"""The same for what earlier runs say, until they are enough to tell themselves."""


@dataclass(slots=True)
class AnswerTokens:
    """Output tokens of the answers to come. `earlier`: what earlier runs saw; `guessed` counts the
    records without, `issues` what the built-in analyst found, scaled up to all records."""

    language: Language
    earlier: Mapping[KindLane, Moments] = field(default_factory=dict)
    analyse: Callable[[Record, Language], Answer] = extractive.analyse
    records: Counter[KindLane] = field(default_factory=Counter)
    guessed: int = 0
    _looked: dict[KindLane, Moments] = field(default_factory=dict)
    _issues: dict[KindLane, Moments] = field(default_factory=dict)

    def of(self, record: Record) -> float:
        """What the answer to `record` takes, about."""
        key = record.kind, record.lane
        number = self.records[key]
        self.records[key] += 1
        known = self.earlier.get(key, Moments())
        believed = known.n >= FEWEST
        self.guessed += not believed
        if number >= EACH and number % EVERY:
            return known.mean if believed else self._looked[key].mean
        guess = self._look(key, record)
        return known.mean if believed else guess

    @property
    def issues(self) -> int:
        """Issues that the answers will hold, about."""
        return round(sum(self._issues[key].mean * n for key, n in self.records.items()))

    def _look(self, key: KindLane, record: Record) -> float:
        answer = self.analyse(record, self.language)
        problem, praise = ISSUE_TOKENS[self.language]
        each = praise if answer.outcome == "positive" else problem
        tokens = float(RESULT_TOKENS + each * len(answer.issues))
        self._looked[key] = self._looked.get(key, Moments()).seen(tokens)
        self._issues[key] = self._issues.get(key, Moments()).seen(len(answer.issues))
        return tokens
