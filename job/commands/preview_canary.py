"""What the canary of a run will ask, before the run: the very records that it draws, in packs and
one by one.

Invariant: the answers of one of both ways are those that the run goes on with, so what the canary
asks in packs stands for these records in the plan, and what it asks one by one comes on top.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import chain

from job.analyse.learning import Learning
from job.analyse.stored import AskSettings
from job.commands.preview_answers import AnswerTokens
from job.commands.preview_asking import Asking, Call
from job.commands.preview_packs import PlannedPacks
from job.estimates.kept import Earlier
from job.pack.packing import Fit, Mode
from job.records import Lane, Record
from job.trial.trial import part_of
from serve.ask.contract import Request
from serve.ask.settings import Provider


@dataclass(frozen=True, slots=True)
class CanaryCalls:
    """`packed` and `alone`: the calls about packs (`packs`: by lane) and about single records;
    `digests`: of the records drawn, which the run does not ask again; `first`: the request that is
    sent first."""

    packed: tuple[Call, ...] = ()
    packs: Counter[Lane] = field(default_factory=Counter)
    alone: tuple[Call, ...] = ()
    digests: frozenset[str] = frozenset()
    first: Request | None = None


def canary_calls(
    records: Sequence[Record],
    ask: AskSettings,
    fit: Fit,
    provider: Provider,
    pack_tokens: int | None,
    earlier: Callable[[AskSettings], Earlier],
    answers: AnswerTokens,
) -> CanaryCalls:
    """The calls of a canary about `records`, in the order of `job.trial.trial`. `earlier`: what
    earlier runs have learned of a way of asking; `answers` count those in packs."""

    def asked(some: Sequence[Record], mode: Mode, told: AnswerTokens) -> PlannedPacks:
        way, room = replace(ask, mode=mode), replace(deepcopy(fit), mode=mode)
        learning = Learning.about(provider, room, pack_tokens)
        learning.begin_with(earlier(way))
        packs = PlannedPacks(iter(some), way, room, told, learning.size)
        calls.append(tuple(Asking(provider.limits.to_limits()).run(packs)))
        return packs

    calls: list[tuple[Call, ...]] = []
    packs = asked(records, "packed", answers)
    single = AnswerTokens(ask.language, earlier(replace(ask, mode="single")).answers)
    asked(records, "single", single)
    asked(records[: part_of(len(records))], "single", single)
    packed, *alone = calls
    digests = frozenset(record.digest for record in records)
    return CanaryCalls(packed, packs.packs, tuple(chain(*alone)), digests, packs.first)
