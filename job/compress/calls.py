"""The calls that make a run's instructions shorter, before its first record is asked about.

Invariant: shortening never fails a run: where the provider cannot be asked, the text is used as it
was written; so it is, and the next run asks again, where the model leaves rules out. What came of
it otherwise is kept under the hash of the text and the model, so the same text is shortened once,
and told in the same words by every run.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace

from job.analyse.analyst import AnalyseSettings
from job.compress.outcome import LONG_CHARACTERS, NOT_KEPT, Outcome, decode, encode, kept_name
from job.compress.shorten import Shortener
from job.config import Settings
from job.progress import BusyClock
from serve.ask.answers_actor import RayAnswers
from serve.ask.ask import Asker, CallCounts
from serve.ask.errors import AskError
from serve.ask.limiter_actor import RayPermits
from serve.ask.settings import key_variable
from serve.ask.spend_actor import RaySpend

PATIENCE_SECONDS = 240.0
"""For all calls together: the longest timeout twice."""
DEADLINE_SHARE = 0.1
"""Of the time until a deadline: what is shortened late saves little."""


@dataclass(slots=True)
class InstructionCalls:
    """Shortens the instructions of `analyst`. Afterwards `outcome` is what came of it, `counts` the
    calls it took, and `busy` the seconds in which one was in flight or waited for its permit."""

    analyst: AnalyseSettings
    outcome: Outcome
    counts: CallCounts = field(default_factory=CallCounts)
    busy: BusyClock = field(default_factory=BusyClock)

    def __call__(self) -> AnalyseSettings:
        """The settings with the instructions that the model is to be told."""
        self.outcome = asyncio.run(self._outcome(self.analyst.ask.own))
        return replace(self.analyst, ask=replace(self.analyst.ask, own=self.outcome.text))

    async def _outcome(self, own: str) -> Outcome:
        if len(own) <= LONG_CHARACTERS:
            return Outcome(own, "short")
        ask, store = self.analyst.ask, RayAnswers(self.analyst.answers)
        name = kept_name(own, ask.best_model)
        kept = decode(await store.learned(name, ask.since), own)
        outcome = kept or await self._ask(own)
        if outcome.reason not in NOT_KEPT:
            # Kept anew, too: what is used must not be forgotten (keep_days), or be worded anew.
            await store.keep_learned(name, encode(outcome))
        return outcome

    async def _ask(self, own: str) -> Outcome:
        provider, model = self.analyst.provider, self.analyst.ask.best_model
        permits = RayPermits(provider.base_url, key_variable(provider), provider.limits.to_limits())
        spend = RaySpend(self.analyst.spend)
        asker = Asker(provider, model, permits, spend, counts=self.counts)
        try:
            async with asyncio.timeout(self._patience()):
                return await Shortener(asker, self.busy).shorten(own)
        except TimeoutError:
            return Outcome(own, "provider", ("no answer in time",))
        except AskError as error:
            return Outcome(own, "provider", (error.message,))
        finally:
            await asker.aclose()

    def _patience(self) -> float:
        """Seconds for all calls together."""
        deadline = self.analyst.deadline
        if deadline is None:
            return PATIENCE_SECONDS
        left = deadline.asking_ends(records=0) - time.time()
        return min(PATIENCE_SECONDS, max(0.0, DEADLINE_SHARE * left))


def instruction_calls(
    settings: Settings, analyst: AnalyseSettings | str
) -> InstructionCalls | None:
    """Who shortens the instructions of a run; None where nobody is to."""
    if not settings.compress_instructions or not isinstance(analyst, AnalyseSettings):
        return None
    return InstructionCalls(analyst, Outcome(settings.own_instructions, "short"))
