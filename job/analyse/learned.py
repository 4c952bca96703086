"""What the asking actor learns, kept between runs: loaded at its start, saved while it asks.

Invariant: each saving puts the run's own entry beside those that are there, so what another run
kept meanwhile stays; what is saved was learned from whole replies, so a killed run leaves estimates
that are true. Nothing here ends a run: without the store it begins with guesses.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from dataclasses import dataclass, field
from typing import Protocol

from job.analyse.learning import Learning
from job.analyse.stored import AskSettings
from job.estimates.kept import Kept, RunEstimates, decode_kept, earlier_of, encode_kept
from job.instructions import instructions_hash
from serve.ask.answers import answer_key
from serve.ask.settings import Provider

SAVE_SECONDS = 15.0
"""Between two savings while packs come back: what a killed run may lose."""


class LearnedStore(Protocol):
    """Where what was learned is kept by name, awaited (`serve.ask.answers_actor.RayAnswers`)."""

    async def learned(self, name: str) -> bytes | None:
        """What is kept under `name`."""
        ...

    async def keep_learned(self, name: str, value: bytes) -> None:
        """Keep `value` under `name`; returns when it is safe."""
        ...


def estimates_name(provider: Provider, ask: AskSettings) -> str:
    """Under what the estimates are kept: whatever changes what a call takes makes another name."""
    return f"estimates-{_asked_how(provider, ask)}"


def around_name(provider: Provider, ask: AskSettings) -> str:
    """Under what is kept what runs take around their calls."""
    return f"around-{_asked_how(provider, ask)}"


def _asked_how(provider: Provider, ask: AskSettings) -> str:
    parts = (provider.base_url, ask.model, instructions_hash(ask.language, ask.own), ask.language)
    return answer_key(*parts, ask.mode).hex()[:16]


@dataclass(slots=True)
class Keeper:
    """Keeps what `learning` learns under `name`. `run` names this start of the actor, `began` is
    when it was (seconds since the epoch)."""

    store: LearnedStore
    name: str
    learning: Learning
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    began: float = field(default_factory=time.time)
    _saved: float = 0.0

    async def load(self) -> None:
        """Begin with what earlier runs have learned."""
        with contextlib.suppress(Exception):
            self.learning.begin_with(earlier_of(decode_kept(await self.store.learned(self.name))))

    async def save(self) -> None:
        """Keep what was learned since the last time."""
        mine = self._entry()
        if mine.weight == self._saved:
            return
        with contextlib.suppress(Exception):
            kept = decode_kept(await self.store.learned(self.name)).merged(Kept((mine,)))
            await self.store.keep_learned(self.name, encode_kept(kept))
            self._saved = mine.weight

    async def keep_saving(self) -> None:
        """Save again and again, until cancelled."""
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            await self.save()

    def _entry(self) -> RunEstimates:
        return self.learning.entry(self.run, self.began)
