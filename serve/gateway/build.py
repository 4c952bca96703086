"""A gateway of its settings, for one process.

Invariant: what is shared in a Ray cluster (permits, the meter of keys) is handed in; without it
everything is in this process.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from serve.ask.limiter_host import InProcessPermits, Permits
from serve.ask.settings import Provider
from serve.cache.caches import Caches
from serve.cache.store import MemoryStore
from serve.gateway.admission import Admission
from serve.gateway.flights import Flights
from serve.gateway.gateway import Gateway
from serve.gateway.keys import KeyRing
from serve.gateway.meter import LocalMeter, Meter, state_folder
from serve.gateway.names import Names
from serve.gateway.recall import Recall
from serve.gateway.repeats import Repeats
from serve.gateway.settings import GatewaySettings
from serve.gateway.upstream import Upstream

PermitsOf = Callable[[Provider], Permits]


def in_process_permits(provider: Provider) -> Permits:
    """A limiter of this process alone."""
    return InProcessPermits(provider.limits.to_limits())


def build_gateway(
    settings: GatewaySettings,
    *,
    permits: PermitsOf = in_process_permits,
    meter: Meter | None = None,
) -> Gateway:
    """A gateway that is not started yet. `permits`: the limiter of each provider; `meter`: of the
    keys, None: one of this process. Raises Misconfigured."""
    caching = settings.serve.cache
    store = MemoryStore(caching.bytes, time.monotonic)
    flights = Flights()
    return Gateway(
        settings,
        names=Names(settings),
        keys=KeyRing.load(settings.serve),
        recall=Recall(Caches(caching, store, None, None), flights, Repeats(store, flights)),
        upstream=Upstream(settings.providers, permits),
        admission=Admission(settings.serve.admission),
        meter=meter or LocalMeter(state_folder(settings.serve.state)),
    )
