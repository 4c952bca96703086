"""The calls that make a run's instructions shorter, before its first record is asked about.

Invariant: shortening never fails a run: where the provider cannot be asked, the text is used as it
was written. What came of it otherwise is kept under the hash of the text and the model, so the same
text is shortened once, and told in the same words by every run.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

from job.analyse.analyst import AnalyseSettings
from job.compress.outcome import LONG_CHARACTERS, Outcome, decode, encode, kept_name
from job.compress.shorten import Shortener
from job.progress import BusyClock
from serve.ask.answers_actor import RayAnswers
from serve.ask.ask import Asker, CallCounts
from serve.ask.errors import AskError
from serve.ask.limiter_actor import RayPermits
from serve.ask.settings import key_variable

PATIENCE_SECONDS = 240.0
"""For all calls together: the longest timeout twice."""


@dataclass(slots=True)
class InstructionCalls:
    """Shortens the instructions of `settings`. `seconds`: for all calls together at most.

    Afterwards `outcome` is what came of it, `counts` the calls it took, and `busy` the seconds in
    which one was in flight or waited for its permit.
    """

    settings: AnalyseSettings
    seconds: float = PATIENCE_SECONDS
    counts: CallCounts = field(default_factory=CallCounts)
    busy: BusyClock = field(default_factory=BusyClock)
    outcome: Outcome = field(init=False)

    def __call__(self) -> AnalyseSettings:
        """The settings with the instructions that the model is to be told."""
        self.outcome = asyncio.run(self._outcome(self.settings.ask.own))
        ask = replace(self.settings.ask, own=self.outcome.text)
        return replace(self.settings, ask=ask)

    async def _outcome(self, own: str) -> Outcome:
        if len(own) <= LONG_CHARACTERS:
            return Outcome(own, "short")
        settings = self.settings
        store = RayAnswers(settings.answers)
        name = kept_name(own, settings.ask.best_model)
        kept = None if settings.ask.since is not None else decode(await store.learned(name), own)
        if kept is not None:
            return kept
        outcome = await self._ask(own)
        if outcome.reason != "provider":
            await store.keep_learned(name, encode(outcome))
        return outcome

    async def _ask(self, own: str) -> Outcome:
        provider = self.settings.provider
        permits = RayPermits(provider.base_url, key_variable(provider), provider.limits.to_limits())
        asker = Asker(provider, self.settings.ask.best_model, permits, counts=self.counts)
        try:
            async with asyncio.timeout(min(self.seconds, PATIENCE_SECONDS)):
                return await Shortener(asker, self.busy).shorten(own)
        except TimeoutError:
            return Outcome(own, "provider", "timeout")
        except AskError as error:
            return Outcome(own, "provider", error.message)
        finally:
            await asker.aclose()
