"""The meaning of a query: its vector, or why there is none.

Invariant: a vector is given only for vectors of the same space; where words are asked for too, no
query waits for a model that is being loaded longer than the first one did.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from serve.search.embedding import NOT_NOW, Encoder, reason_of
from serve.search.errors import NoMeaning
from serve.search.query import Query
from serve.search.space import Space
from serve.search.vectors import Half

CHANGED = "The embedding model has other weights than it had: its vectors are being made anew."
REFUSED = "The embedding model refuses this text."
RECENT = 256
"""Queries whose vectors are remembered."""
_LOG = logging.getLogger(__name__)


class Meaning(NamedTuple):
    """The vector of a query; what became of its meaning, as it is told: used, not_asked or
    unavailable; and why it is unavailable."""

    vector: Half | None
    told: str
    reason: str | None = None


class Meanings:
    """Of the queries of one replica."""

    def __init__(
        self,
        encoder: Encoder,
        saw: Callable[[Half], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`saw`: is given the vector of PROBE where it is not that of the space."""
        self._encoder = encoder
        self._saw = saw
        self._clock = clock
        self._recent: OrderedDict[tuple[str, str], Half] = OrderedDict()
        """By the space of a vector, and the query."""

    async def of(self, query: Query, space: Space, seconds: float) -> Meaning:
        """That of `query`, for vectors of `space`, within `seconds`. Raises NoMeaning where nothing
        else was asked for and it cannot be had."""
        if query.mode == "words":
            return Meaning(None, "not_asked")
        key = space.id, query.text
        known = self._recent.get(key)
        if known is not None:
            self._recent.move_to_end(key)
            return Meaning(known, "used")
        deadline = self._clock() + seconds
        try:
            if query.mode == "both":
                await self._encoder.ready(seconds)
            left = max(0.0, deadline - self._clock())
            vectors, probe = await self._encoder.encode([query.text], left)
        except NOT_NOW as error:
            said = str(error) or type(error).__name__
            _LOG.warning("a query is not searched by its meaning: %s", said)
            return _without(query, reason_of(error))
        if space.probe and not space.has(probe):
            self._saw(probe)
            return _without(query, CHANGED)
        if not vectors.any():
            return _without(query, REFUSED)
        self._recent[key] = vectors[0]
        if len(self._recent) > RECENT:
            self._recent.popitem(last=False)
        return Meaning(vectors[0], "used")


def _without(query: Query, reason: str) -> Meaning:
    """A query without its meaning. Raises NoMeaning where nothing else was asked for."""
    if query.mode == "meaning":
        raise NoMeaning(f"{reason} Search by words, or try again.")
    return Meaning(None, "unavailable", reason)
