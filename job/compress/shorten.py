"""Long instructions -> what the model is told instead: shorten, check, ask again, judge.

Invariant: the short form is used only if the model answered for every rule it was asked about, code
found nothing lost or added in any of them, and the model itself judged each to say the same.
Otherwise the text stays as it was written, to the last character.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from job.compress.asking import (
    MOST_RULES,
    Room,
    halved,
    judge_requests,
    read_rules,
    read_verdicts,
    shorten_requests,
)
from job.compress.check import flaws
from job.compress.outcome import LEAST_SAVING, LONG_CHARACTERS, Outcome, Reason
from job.compress.rules import join, split
from job.instructions import Language
from job.progress import BusyClock
from job.text import language
from serve.ask import tokens
from serve.ask.ask import Asker
from serve.ask.contract import Reply, Request

ROUNDS = 2
"""What does not pass, and what has no answer, is asked about once more."""
_NO_ANSWER = "no answer"
_MARK = re.compile(r"^(?:[-*+•]\s+|[，,；;、。]\s*)+")
_END = re.compile(r"[.!。！；;\s]+$")


@dataclass(slots=True)
class Tries:
    """Short forms by rule. `wrong`: what is wrong with those that do not pass; `asked`: how many
    rules the model was asked about."""

    short: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, list[str]] = field(default_factory=dict)
    asked: int = 0


@dataclass(slots=True)
class Shortener:
    """Has the model behind `asker` shorten texts. `busy`: the seconds in which a call was in flight
    or waited for its permit."""

    asker: Asker
    busy: BusyClock = field(default_factory=BusyClock)

    async def shorten(self, own: str) -> Outcome:
        """What came of shortening `own`. Raises AskError where the model could not be asked."""
        if len(own) <= LONG_CHARACTERS:
            return Outcome(own, "short")
        spoken: Language = "zh" if language(own) == "zh" else "en"
        pieces = split(own)
        places = [place for place, piece in enumerate(pieces) if piece.rule]
        rules = {str(number): pieces[place].line for number, place in enumerate(places, 1)}
        tries = await self._shorten_all(rules, spoken)
        if tries.wrong:
            name = next(iter(tries.wrong))
            silent = all(said == [_NO_ANSWER] for said in tries.wrong.values())
            lost: Reason = "unanswered" if silent else "lost"
            made = [tries.short[name]] if name in tries.short else []
            return Outcome(own, lost, (rules[name], *made), tries.asked)
        changed = {name: text for name, text in tries.short.items() if text != rules[name]}
        judged = await self._judge_all({n: (rules[n], text) for n, text in changed.items()}, spoken)
        for name, same in judged.items():
            if not same:
                reason: Reason = "unanswered" if same is None else "judged"
                return Outcome(own, reason, (rules[name], changed[name]), tries.asked)
        by_place = {places[int(name) - 1]: changed[name] for name in judged}
        text = join(pieces, by_place)
        if tokens.count(text) > (1 - LEAST_SAVING) * tokens.count(own):
            return Outcome(own, "saves_nothing", rules=tries.asked)
        return Outcome(text, None, rules=tries.asked)

    async def _shorten_all(self, rules: Mapping[str, str], spoken: Language) -> Tries:
        tries = Tries()
        wanted, most = rules, MOST_RULES
        for _ in range(ROUNDS):
            requests = shorten_requests(wanted, tries.wrong, spoken, self._room(), most)
            tries.wrong = {name: [_NO_ANSWER] for _, names in requests for name in names}
            tries.asked = max(tries.asked, len(tries.wrong))
            replies = await self._ask_all(requests)
            for (_, names), reply in zip(requests, replies, strict=True):
                for name, text in read_rules(reply.text, names).items():
                    tries.short[name] = _tidy(text, rules[name])
                    tries.wrong[name] = flaws(rules[name], tries.short[name])
            tries.wrong = {name: found for name, found in tries.wrong.items() if found}
            if not tries.wrong:
                break
            wanted = {name: rules[name] for name in tries.wrong}
            most = halved([names for _, names in requests], replies, most)
        return tries

    async def _judge_all(
        self, pairs: Mapping[str, tuple[str, str]], spoken: Language
    ) -> dict[str, bool | None]:
        """Whether each of the pairs that there is room for says the same; None where the model
        does not say, asked twice."""
        requests = judge_requests(pairs, spoken, self._room())
        judged: dict[str, bool | None] = {name: None for _, names in requests for name in names}
        for _ in range(ROUNDS):
            replies = await self._ask_all(requests)
            for (_, names), reply in zip(requests, replies, strict=True):
                judged |= read_verdicts(reply.text, names)
            missing = {name: pairs[name] for name, same in judged.items() if same is None}
            most = halved([names for _, names in requests], replies, MOST_RULES)
            requests = judge_requests(missing, spoken, self._room(), most)
        return judged

    async def _ask_all(self, requests: Sequence[tuple[Request, list[str]]]) -> list[Reply]:
        asked = [asyncio.ensure_future(self._ask(request)) for request, _ in requests]
        try:
            return list(await asyncio.gather(*asked))
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    async def _ask(self, request: Request) -> Reply:
        with self.busy.running():
            lease = await self.asker.acquire("fast", request.estimate_in + request.max_output)
            return await self.asker.ask(request, lease)

    def _room(self) -> Room:
        return Room(self.asker.provider.context, self.asker.provider.max_output)


def _tidy(text: str, rule: str) -> str:
    """The short form in one line, as it stands in the place of `rule`; `rule` itself where it is no
    shorter."""
    short = _MARK.sub("", " ".join(text.split()))
    if not _END.search(rule):
        short = _END.sub("", short)
    return short if tokens.count(short) < tokens.count(rule) else rule
