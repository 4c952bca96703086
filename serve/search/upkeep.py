"""What the one process that makes the index does in the background.

Invariant: taking runs in, having texts embedded, and looking after the graphs wait for none of each
other; what goes wrong now is tried again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from serve.search.embedding import NOT_NOW
from serve.search.indexer import Indexer
from serve.search.vectors import READ_ERRORS

LOOK_SECONDS = 2.0
"""Between two looks for new runs."""
REST, MOST_REST = 4, 30.0
"""A look that takes long is followed by REST times as long without one, to MOST_REST seconds: one
over 1,000 runs takes 0.25 s of CPU."""
AWAY_SECONDS = 60.0
"""To which what comes between two tries doubles, while texts wait for a model that is away."""
EMBED_SECONDS = 600.0
"""That a portion of texts may take before it is tried again."""
GRAPH_RETRY_SECONDS = 60.0
"""After which a graph that could not be made is tried again: it may take minutes of CPU."""
_LOG = logging.getLogger(__name__)


class Upkeep:
    """Of an index. Belongs to the loop it is begun on."""

    def __init__(self, indexer: Indexer, clock: Callable[[], float] = time.monotonic) -> None:
        self._indexer = indexer
        self._clock = clock
        self._working: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Work from now on, if that was not begun."""
        if not self._working:
            work = (self._look(), self._embed(), self._make_graphs())
            self._working = [asyncio.create_task(each) for each in work]

    def check(self) -> None:
        """Raises RuntimeError where a part of it works no longer."""
        if any(task.done() for task in self._working):
            raise RuntimeError("the search does not look for new runs any more")

    def end(self) -> None:
        """Begin nothing more."""
        for task in self._working:
            task.cancel()

    async def _look(self) -> None:
        """Take in runs as they come, however long vectors take."""
        while True:
            began = self._clock()
            try:
                await asyncio.to_thread(self._indexer.look)
            except READ_ERRORS as error:
                _LOG.warning("the index cannot be made now: %s", error)
            took = self._clock() - began
            await asyncio.sleep(max(LOOK_SECONDS, min(MOST_REST, REST * took)))

    async def _embed(self) -> None:
        away = LOOK_SECONDS
        while True:
            try:
                busy = await self._indexer.embed(EMBED_SECONDS)
                away = LOOK_SECONDS
                if not busy:
                    await asyncio.sleep(LOOK_SECONDS)
            except (*NOT_NOW, *READ_ERRORS) as error:
                _LOG.warning("%d texts wait for their vectors: %s", self._indexer.behind, error)
                await asyncio.sleep(away)
                away = min(AWAY_SECONDS, 2 * away)

    async def _make_graphs(self) -> None:
        """Look after the graphs, also while texts wait for a model that is away."""
        while True:
            seconds = LOOK_SECONDS
            try:
                await asyncio.to_thread(self._indexer.make_graphs)
            except READ_ERRORS as error:
                _LOG.warning("a graph cannot be made now: %s", error)
                seconds = GRAPH_RETRY_SECONDS
            await asyncio.sleep(seconds)
