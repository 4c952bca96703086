"""One request -> what is counted of it, and its span.

Invariant: measuring never fails a request, and takes some twenty microseconds of it (without spans;
docs/metrics.md): the cells of an endpoint, a model and a tenant are looked up once and kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from serve.ask.contract import Usage
from serve.gateway.contract import Answered, Call, Caller, Target
from serve.gateway.settings import GatewaySettings
from serve.gateway.terms import terms_of
from serve.metrics import families
from serve.metrics.board import EXCHANGE_SECONDS, POST_SECONDS, Shared
from serve.metrics.numbers import Count, Histogram, Labels, Numbers, Snapshot
from serve.metrics.prometheus import render
from serve.metrics.spans import Spans

MOST_TENANTS = 200
"""That have numbers of their own; the rest are counted together, as OTHER."""
OTHER = "(other)"
NO_TASK = "(none)"
OK = 200

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """The cells of an endpoint and a status."""

    requests: Count
    seconds: Histogram
    gateway: Histogram
    queue: Histogram
    serialise: Histogram


@dataclass(frozen=True, slots=True)
class _Model:
    """The cells of a model of a provider."""

    first_byte: Histogram
    last_byte: Histogram
    ttft: Histogram
    tpot: Histogram
    retries: Count
    tokens_in: Count
    tokens_out: Count
    cached: Count


class Metrics:
    """What one replica has measured. Belongs to the loop it is used on."""

    def __init__(
        self,
        settings: GatewaySettings,
        shared: Shared | None = None,
        spans: Spans | None = None,
    ) -> None:
        """`shared`: where replicas of a cluster tell each other; `spans`: who exports spans."""
        self._numbers = Numbers()
        self._shared = shared
        self._spans = spans
        self._replica = uuid.uuid4().hex[:8] if shared else ""
        self._posting: asyncio.Task[None] | None = None
        self._endpoints: dict[tuple[str, int], _Endpoint] = {}
        self._models = {
            target: self._model(target.provider, target.model) for target in terms_of(settings)
        }
        self._other = self._model(OTHER, OTHER)
        self._tenants: set[str] = set()
        self._cells: dict[tuple[str, ...], Count] = {}

    async def start(self) -> None:
        """Begin to tell the other replicas."""
        if self._shared is not None:
            self._posting = asyncio.create_task(self._post(self._shared))

    async def aclose(self) -> None:
        """Tell nobody any more; spans that wait are exported."""
        if self._posting is not None:
            self._posting.cancel()
            await asyncio.wait([self._posting])
        if self._spans is not None:
            await self._spans.aclose()

    def watch(self, family: families.Family, read: Callable[[], dict[Labels, float]]) -> None:
        """See `Numbers.watch`: what somebody else counts."""
        self._numbers.watch(family, read)

    def observe(
        self,
        endpoint: str,
        status: int,
        call: Call | None,
        about: Answered,
        seconds: float,
        headers: Mapping[str, str] | None = None,
        caller: Caller | None = None,
    ) -> None:
        """A request is over. `endpoint`: one of ours; `status`: what was answered; `call`: what a
        model was asked, None where none is or that was not understood; `seconds`: the whole of it;
        `headers`: of the request, in lower case, for who it is a part of (`traceparent`);
        `caller`: who asked, where there is no `call` to tell it and it is known."""
        cells = self._endpoints.get((endpoint, status)) or self._endpoint(endpoint, status)
        cells.requests.value += 1
        cells.seconds.observe(seconds)
        asking = caller if call is None else call.caller
        if asking is not None:
            tenant = self._tenant(asking.tenant)
            self._count(families.TENANT_REQUESTS, tenant, str(status))
            if status == OK:
                _timed(cells, about, seconds)
            if call is not None:
                self._called(endpoint, status, call, about)
                if about.attempts and about.usage is not None:
                    self._used(tenant, about, about.usage)
        if self._spans is not None:
            self._spans.record(endpoint, status, call, about, seconds, headers or {})

    def snapshot(self) -> Snapshot:
        """All numbers of this replica as they are now."""
        return self._numbers.snapshot()

    async def render(self) -> bytes:
        """The numbers of all replicas, as Prometheus reads them; where the others cannot be had,
        those of this one."""
        own = self.snapshot()
        found: Mapping[str, Snapshot] = {self._replica: own}
        if self._shared is not None:
            with contextlib.suppress(Exception):
                found = await self._exchange(self._shared, own)
        # Of twenty replicas it takes a tenth of a second, in which requests go on.
        return await asyncio.to_thread(render, found)

    def _called(self, endpoint: str, status: int, call: Call, about: Answered) -> None:
        """A model was asked, or its kept answer given."""
        self._count(families.CACHE, endpoint, about.cache)
        if status != OK:
            return
        if about.finish_reason is not None:
            task = call.task.name if call.task else NO_TASK
            self._count(families.TASKS, task)
            if about.finish_reason == "length":
                self._count(families.CUT, task)
        sent, first, last = about.sent, about.first_byte, about.last_byte
        if about.attempts == 0 or first is None or last is None or sent is None:
            return
        model = self._models.get(about.target or _NOBODY, self._other)
        model.first_byte.observe(first - sent)
        model.last_byte.observe(last - sent)
        if call.stream and (token := about.first_token) is not None:
            model.ttft.observe(token)
            if about.usage is not None and about.usage.tokens_out > 1:
                model.tpot.observe((last - token) / (about.usage.tokens_out - 1))

    def _used(self, tenant: str, about: Answered, usage: Usage) -> None:
        target = about.target or _NOBODY
        model = self._models.get(target)
        if model is None:
            model, target = self._other, _NOBODY
        model.retries.value += about.attempts - 1
        model.tokens_in.value += usage.tokens_in
        model.tokens_out.value += usage.tokens_out
        model.cached.value += usage.cached
        self._count(families.TENANT_TOKENS, tenant, "in", by=usage.tokens_in)
        self._count(families.TENANT_TOKENS, tenant, "out", by=usage.tokens_out)
        if about.cost is not None and about.currency is not None:
            cost, currency = float(about.cost), about.currency
            self._count(families.COST, target.provider, target.model, currency, by=cost)
            self._count(families.TENANT_COST, tenant, currency, by=cost)

    def _count(self, family: families.Family, *labels: str, by: float = 1) -> None:
        key = (family.name, *labels)
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = self._numbers.count(family, *labels)
        cell.value += by

    def _tenant(self, name: str) -> str:
        if name not in self._tenants:
            if len(self._tenants) >= MOST_TENANTS:
                return OTHER
            self._tenants.add(name)
        return name

    def _endpoint(self, endpoint: str, status: int) -> _Endpoint:
        numbers = self._numbers
        cells = self._endpoints[endpoint, status] = _Endpoint(
            numbers.count(families.REQUESTS, endpoint, str(status)),
            numbers.histogram(families.SECONDS, endpoint),
            numbers.histogram(families.GATEWAY, endpoint),
            numbers.histogram(families.QUEUE, endpoint),
            numbers.histogram(families.SERIALISE, endpoint),
        )
        return cells

    def _model(self, provider: str, model: str) -> _Model:
        numbers = self._numbers
        return _Model(
            numbers.histogram(families.FIRST_BYTE, provider, model),
            numbers.histogram(families.LAST_BYTE, provider, model),
            numbers.histogram(families.TTFT, provider, model),
            numbers.histogram(families.TPOT, provider, model),
            numbers.count(families.RETRIES, provider, model),
            numbers.count(families.TOKENS, provider, model, "in"),
            numbers.count(families.TOKENS, provider, model, "out"),
            numbers.count(families.TOKENS, provider, model, "cached"),
        )

    async def _post(self, shared: Shared) -> None:
        while True:
            try:
                await self._exchange(shared, self.snapshot())
            except Exception as error:
                said = str(error) or type(error).__name__
                _LOG.warning("the other replicas do not hear what this one measured: %s", said)
            await asyncio.sleep(POST_SECONDS)

    async def _exchange(self, shared: Shared, own: Snapshot) -> Mapping[str, Snapshot]:
        return await asyncio.wait_for(shared.exchange(self._replica, own), EXCHANGE_SECONDS)


def _timed(cells: _Endpoint, about: Answered, seconds: float) -> None:
    """Where the time of an answer went."""
    cells.queue.observe(about.queued)
    if about.attempts == 0:
        cells.gateway.observe(seconds)
    elif about.attempts == 1 and about.sent is not None:
        cells.gateway.observe(about.sent - about.queued)
    if about.attempts and about.sent is not None and about.last_byte is not None:
        cells.serialise.observe(seconds - about.last_byte)


_NOBODY = Target(OTHER, OTHER)
