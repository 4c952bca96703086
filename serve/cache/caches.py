"""One request looked up in each cache that it may use, and its answer kept.

Invariant: nothing is found or kept that the request did not wish for, nothing across partitions,
and nothing is kept but whole, good answers: no error, nothing cut, filtered or empty.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from serve.cache.good import is_good
from serve.cache.kept import pack, unpack
from serve.cache.partition import place_of
from serve.cache.store import LARGEST_SHARE, Store
from serve.cache.ttl import time_to_live
from serve.gateway.contract import CacheKind, CacheWish, Call, Target
from serve.gateway.errors import BadRequest
from serve.gateway.settings import CacheSettings

KINDS: tuple[CacheKind, ...] = ("exact", "near", "semantic")
"""In the order in which they are asked, which is that of what they cost."""
NOTHING = CacheWish()
GONE = 4
"""Questions that an index may name in vain (their answers are gone) in one search."""


class Questions(Protocol):
    """An index of questions whose answers are kept: the near and the semantic one. It is bounded;
    what it names may be gone from the store, and `forget` tells it so."""

    async def find(self, partition: bytes, text: str) -> bytes | None:
        """The key of the answer to the question in `partition` that asks what `text` asks, checked
        by `serve.cache.agree`; None if there is none."""

    async def add(self, partition: bytes, text: str, key: bytes, ttl: float) -> None:
        """The answer to `text` is kept under `key` for `ttl` seconds. Called right after a `find`
        of the same text that found nothing, as a rule."""

    def forget(self, partition: bytes, key: bytes) -> None:
        """The answer under `key` is gone."""

    async def aclose(self) -> None:
        """End whatever it still does."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A kept answer. `body`: as it was kept, a whole completion; `checked`: it was drawn to be
    asked live as well (`serve.cache.recheck`); `target`: who answered it then, if known;
    `partition`, `key`: where the question that it was kept for is."""

    kind: CacheKind
    body: bytes
    checked: bool = False
    target: Target | None = None
    partition: bytes = b""
    key: bytes = b""


class Caches:
    """All caches of one replica."""

    def __init__(
        self,
        settings: CacheSettings,
        store: Store,
        near: Questions | None,
        semantic: Questions | None,
        *,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """`near`, `semantic`: None, that cache is never used; `draw`: a number in [0, 1) that
        decides whether a hit is checked."""
        self._settings = settings
        self._store = store
        self._indexes: dict[CacheKind, Questions | None] = {"near": near, "semantic": semantic}
        self._draw = draw
        self._on = frozenset(kind for kind in KINDS if getattr(settings, kind))

    def wish(self, headers: Mapping[str, str], body: Mapping[str, Any]) -> CacheWish:
        """Which caches a request with `headers` (lower case, or case-insensitive) may use.

        Raises BadRequest for a cache that there is not.
        """
        kinds = self._on
        named = headers.get("x-fupan-cache")
        if named is not None:
            kinds = _named(named)
        if not kinds:
            return NOTHING
        control = headers.get("cache-control", "").lower()
        forced = headers.get("x-fupan-cache-force") == "1"
        if "no-store" in control or not (forced or _is_determined(body)):
            return NOTHING
        return CacheWish(kinds, fresh="no-cache" in control)

    def key(self, call: Call) -> bytes:
        """32 bytes over all that decides the answer to `call`."""
        return place_of(call).key

    async def find(self, call: Call) -> Hit | None:
        """The kept answer to `call` in the first cache of its wish that has one."""
        wish = call.wish
        if not wish.kinds or wish.fresh:
            return None
        place = place_of(call)
        if "exact" in wish.kinds and (kept := await self._store.get(place.key)) is not None:
            return _hit("exact", kept, place.partition, place.key)
        if place.text is None:
            return None
        for kind, index in self._indexes.items():
            if index is None or kind not in wish.kinds:
                continue
            found = await self._similar(index, place.partition, place.text)
            if found is not None:
                key, kept = found
                checked = self._draw() < self._settings.recheck
                return _hit(kind, kept, place.partition, key, checked)
        return None

    async def keep(self, call: Call, body: bytes, target: Target | None = None) -> None:
        """Keep `body`, the whole answer to `call`, if it wishes so and the answer is good.
        `target`: who answered; that of a fallback to another model is not kept."""
        kinds = call.wish.kinds
        if not kinds or len(body) * LARGEST_SHARE > self._settings.bytes:
            return
        if target and call.targets and target.model != call.targets[0].model:
            return
        if not is_good(call.endpoint, body) or not call.usable(body):
            return
        place = place_of(call)
        ttl = time_to_live(self._settings.ttl, call.estimate, place.key)
        await self._store.set(place.key, pack(body, target), ttl)
        if place.text is None:
            return
        for kind, index in self._indexes.items():
            if index is not None and kind in kinds:
                await index.add(place.partition, place.text, place.key, ttl)

    def forget(self, hit: Hit) -> None:
        """Give the answer of `hit` to no other question any more; an equal one still gets it."""
        for index in self._indexes.values():
            if index is not None:
                index.forget(hit.partition, hit.key)

    async def aclose(self) -> None:
        """End what the indexes still do."""
        for index in self._indexes.values():
            if index is not None:
                await index.aclose()

    async def _similar(
        self, index: Questions, partition: bytes, text: str
    ) -> tuple[bytes, bytes] | None:
        """The key and the answer of a question in `index` that asks what `text` asks."""
        for _ in range(GONE):
            key = await index.find(partition, text)
            if key is None:
                return None
            kept = await self._store.get(key)
            if kept is not None:
                return key, kept
            index.forget(partition, key)
        return None


def _named(value: str) -> frozenset[CacheKind]:
    names = {name.strip() for name in value.lower().split(",")}
    if names == {"off"}:
        return frozenset()
    kinds = frozenset(kind for kind in KINDS if kind in names)
    if len(kinds) != len(names):
        message = "x-fupan-cache is `off`, or one or more of `exact, near, semantic`"
        raise BadRequest(message, param="x-fupan-cache", code="invalid_cache")
    return kinds


def _is_determined(body: Mapping[str, Any]) -> bool:
    """Whether an equal request gets an equal answer: embeddings, and chat at temperature 0. Where
    none is given, the provider's own holds, which is 1."""
    if "messages" not in body:
        return True
    temperature = body.get("temperature")
    return type(temperature) in (int, float) and temperature == 0


def _hit(kind: CacheKind, kept: bytes, partition: bytes, key: bytes, checked: bool = False) -> Hit:
    body, target = unpack(kept)
    return Hit(kind, body, checked, target, partition, key)
