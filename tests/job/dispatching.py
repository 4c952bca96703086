"""A dispatcher on this event loop, against whatever listens at a URL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from job.analyse.dispatch import Dispatcher
from job.analyse.requests import instruction_tokens
from job.analyse.stored import AskSettings
from job.instructions import Language
from job.pack.packing import Fit, Mode
from serve.ask.ask import Asker
from serve.ask.limiter import Limits
from serve.ask.limiter_host import InProcessPermits
from serve.ask.settings import Provider


class MemoryStore:
    """A store that remembers what it was given."""

    def __init__(self) -> None:
        self.held: dict[bytes, bytes] = {}

    async def get_many(
        self, keys: Sequence[bytes], since: float | None = None
    ) -> dict[bytes, bytes]:
        return {key: self.held[key] for key in keys if key in self.held}

    async def put_many(self, items: Sequence[tuple[bytes, bytes]], replace: bool = False) -> None:
        for key, value in items:
            if replace or key not in self.held:
                self.held[key] = value


@asynccontextmanager
async def dispatcher(
    base_url: str,
    store: MemoryStore | None = None,
    mode: Mode = "packed",
    context: int = 8192,
    language: Language = "en",
    pauses: tuple[float, ...] = (0.0, 0.0, 0.0),
    rationed: bool = False,
    models: tuple[str, ...] = ("simulated",),
    **provider: Any,
) -> AsyncIterator[Dispatcher]:
    """A running dispatcher for the provider at `base_url`; several `models` share the records."""
    settings = Provider(base_url=base_url, models=models, context=context, **provider)
    asker = Asker(settings, models[-1], InProcessPermits(Limits(max_concurrency=8)), pauses=pauses)
    ask = AskSettings(",".join(models), language, mode, tiers=models)
    fit = Fit(context, None, instruction_tokens(language), mode=mode)
    made = Dispatcher(asker, store or MemoryStore(), ask, fit, linger=0.1, rationed=rationed)
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asker.aclose()
