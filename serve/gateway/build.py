"""A gateway of its settings, for one process.

Invariant: what is shared in a Ray cluster (permits, the meter of keys) is handed in; without it
everything is in this process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from serve.ask.errors import Misconfigured
from serve.ask.limiter_host import InProcessPermits, Permits
from serve.ask.settings import Provider
from serve.cache.caches import Caches
from serve.cache.near import NearIndex
from serve.cache.redis_store import RedisStore
from serve.cache.semantic_model import semantic_index
from serve.cache.store import MemoryStore, Store
from serve.gateway.admission import Admission
from serve.gateway.gateway import Gateway
from serve.gateway.keys import KeyRing
from serve.gateway.local_models import LocalModels
from serve.gateway.meter import LocalMeter, Meter, state_folder
from serve.gateway.names import Names
from serve.gateway.searching import check_tenants
from serve.gateway.settings import GatewaySettings, ServeSettings
from serve.gateway.terms import terms_of
from serve.gateway.upstream import Upstream
from serve.metrics import Metrics
from serve.metrics.board import Shared
from serve.metrics.spans import Spans
from serve.models.contract import ReadyCalls
from serve.models.settings import served
from serve.search.contract import Search

INDEX_SHARE = 8
"""The index of questions takes at most this part of what answers may take."""

PermitsOf = Callable[[Provider], Permits]


def in_process_permits(provider: Provider) -> Permits:
    """A limiter of this process alone."""
    return InProcessPermits(provider.limits.to_limits())


def build_gateway(
    settings: GatewaySettings,
    *,
    permits: PermitsOf = in_process_permits,
    meter: Meter | None = None,
    measured: Shared | None = None,
    models: ReadyCalls | None = None,
    search: Search | None = None,
) -> Gateway:
    """A gateway that is not started yet. `permits`: the limiter of each provider; `meter`: of the
    keys, None: one of this process; `measured`: where replicas tell each other what they measure;
    `models`: the cluster's own; `search`: over what runs have left. Raises Misconfigured."""
    keys = KeyRing.load(settings.serve)
    if settings.search is not None:
        check_tenants(settings.search, keys.open)
    caching = settings.serve.cache
    near = NearIndex(caching.bytes // INDEX_SHARE, time.monotonic)
    store = _store(settings.serve)
    return Gateway(
        settings,
        names=Names(settings),
        keys=keys,
        caches=Caches(caching, store, near, semantic_index(caching)),
        store=store,
        upstream=Upstream(settings.providers, permits, local=_local(settings, models)),
        admission=Admission(settings.serve.admission),
        meter=meter or LocalMeter(state_folder(settings.serve.state)),
        metrics=Metrics(settings, measured, Spans.from_environment())
        if settings.serve.metrics
        else None,
        search=None if settings.search is None else search,
    )


def _local(settings: GatewaySettings, calls: ReadyCalls | None) -> LocalModels | None:
    if not settings.models:
        return None
    if calls is None:
        raise Misconfigured(
            "fupan.yaml has models of its own, and nobody serves them here: `fupan serve` does"
        )
    pooled = {name for name, _, entry in served(settings.models) if name != entry}
    return LocalModels(calls, terms_of(settings), time.monotonic, pooled)


def _store(settings: ServeSettings) -> Store:
    """Where answers are kept: in the Redis that is named, else in this process."""
    memory = MemoryStore(settings.cache.bytes, time.monotonic)
    url = settings.redis
    if settings.redis_env is not None:
        url = os.environ.get(settings.redis_env)
        if not url:
            raise Misconfigured(
                f"the environment variable {settings.redis_env} (serve.redis_env) is not set. Set "
                "it to the URL of a Redis"
            )
    if url is None:
        return memory
    try:
        return RedisStore(url, memory)
    except ValueError as error:
        raise Misconfigured(f"serve.redis or serve.redis_env: {error}") from None
