"""Asking the model for the names of themes: at most eight calls, recalled like any other answer.

Invariant: naming never fails a run: a theme whose name cannot be had keeps the code's own sentence.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from job.analyse.analyst import AnalyseSettings
from job.naming.code_names import ThemeInput, ThemeName
from job.naming.naming import (
    SECOND_ROUND,
    Names,
    NamingRequest,
    naming_requests,
    read_names,
    worth_asking,
)
from job.progress import BusyClock
from serve.ask.answers import answer_key
from serve.ask.answers_actor import RayAnswers
from serve.ask.ask import Asker, CallCounts
from serve.ask.contract import CONTRACT_VERSION
from serve.ask.errors import AskError
from serve.ask.limiter_actor import RayPermits
from serve.ask.settings import key_variable
from serve.ask.spend_actor import RaySpend

PATIENCE_SECONDS = 240.0
"""For one request with its retries: the longest timeout twice."""


@dataclass(slots=True)
class NamingCalls:
    """Has the model name themes, over the limiter that the analysis used.

    `seconds`: for all calls together; None: as long as they take. Afterwards `counts` are the calls
    that took, `busy` the seconds in which one was in flight or waited for its permit, and `refused`
    the names that were given and could not be used.
    """

    settings: AnalyseSettings
    seconds: float | None = None
    counts: CallCounts = field(default_factory=CallCounts)
    busy: BusyClock = field(default_factory=BusyClock)
    refused: int = 0
    _until: float = math.inf

    def __call__(self, themes: Sequence[ThemeInput]) -> dict[str, ThemeName]:
        """The names that could be had, by theme."""
        return asyncio.run(self._name(worth_asking(themes)))

    async def _name(self, themes: Sequence[ThemeInput]) -> dict[str, ThemeName]:
        if self.seconds is not None:
            self._until = time.monotonic() + self.seconds
        provider = self.settings.provider
        permits = RayPermits(provider.base_url, key_variable(provider), provider.limits.to_limits())
        spend = RaySpend(self.settings.spend)
        model = self.settings.ask.best_model
        asker = Asker(provider, model, permits, spend, counts=self.counts)
        language = self.settings.ask.language
        try:
            first = await self._round(asker, naming_requests(themes, language, provider.context))
            self.refused = len(first.problems)
            again = [theme for theme in themes if theme.id in first.problems]
            requests = naming_requests(
                again, language, provider.context, SECOND_ROUND, first.problems
            )
            second = await self._round(asker, requests)
        finally:
            await asker.aclose()
        return first.good | second.good

    async def _round(self, asker: Asker, requests: Sequence[NamingRequest]) -> Names:
        found = await asyncio.gather(*(self._in_time(asker, request) for request in requests))
        names = Names({}, {})
        for some in found:
            names.good.update(some.good)
            names.problems.update(some.problems)
        return names

    async def _in_time(self, asker: Asker, asked: NamingRequest) -> Names:
        """What `_one` gives, or no names where a failing provider would hold a finished run up."""
        try:
            patience = min(PATIENCE_SECONDS, max(0.0, self._until - time.monotonic()))
            async with asyncio.timeout(patience):
                return await self._one(asker, asked)
        except TimeoutError:
            return Names({}, {})

    async def _one(self, asker: Asker, asked: NamingRequest) -> Names:
        settings, request = self.settings.ask, asked.request
        version = f"name-{CONTRACT_VERSION}"
        key = answer_key(version, request.system, request.user, settings.best_model)
        if (known := await self._recall(key)) is not None:
            return read_names(asked, known, settings.language)
        try:
            with self.busy.running():
                tokens = request.estimate_in + request.max_output
                reply = await asker.ask(request, await asker.acquire("fast", tokens))
        except AskError:
            return Names({}, {})
        names = read_names(asked, reply.text, settings.language)
        if names.good:
            await self._keep(key, reply.text)
        return names

    async def _recall(self, key: bytes) -> str | None:
        """The reply that is stored; None also where the store fails."""
        try:
            store = RayAnswers(self.settings.answers)
            known = await store.get_many([key], self.settings.ask.since)
        except Exception:
            return None
        return known[key].decode(errors="replace") if key in known else None

    async def _keep(self, key: bytes, reply: str) -> None:
        """Store a reply, unless the store fails."""
        with suppress(Exception):
            await RayAnswers(self.settings.answers).put_many(
                [(key, reply.encode())], replace=self.settings.ask.since is not None
            )
