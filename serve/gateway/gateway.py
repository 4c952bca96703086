"""One request of a client, from its arrival to its answer.

    key -> body -> what it asks for -> caches -> the key's rate and money -> its turn -> provider

Invariant: nobody is asked for a request before its key, its body and its model are known to be
good; whatever fails is a GatewayError.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from serve.cache.caches import Caches
from serve.cache.store import Store
from serve.gateway.admission import Admission, Visit
from serve.gateway.analyze import Analyst, read_document
from serve.gateway.asking import Asking
from serve.gateway.bound import Costs
from serve.gateway.browser import check_page
from serve.gateway.client import Client
from serve.gateway.contract import Answer, Call, Caller, Endpoint, Stream, Target, Task
from serve.gateway.errors import BadRequest, Draining, Forbidden, UnknownModel
from serve.gateway.estimate import chat_tokens, embedding_tokens
from serve.gateway.joined import Joined
from serve.gateway.keys import KeyRecord, KeyRing
from serve.gateway.meter import Meter
from serve.gateway.names import Entry, Names
from serve.gateway.recall import Recall
from serve.gateway.request import (
    check_chat,
    check_embeddings,
    idempotency_key,
    read_object,
    tokens_joined,
)
from serve.gateway.searching import Searching
from serve.gateway.settings import GatewaySettings
from serve.gateway.tasks import TASK_HEADER, task_named, tasks_of
from serve.gateway.terms import terms_of
from serve.gateway.upstream import Upstream
from serve.metrics import Metrics
from serve.metrics.families import IN_FLIGHT, KEYS_UNUSABLE, RECHECKS, WAITING
from serve.search.contract import Search

NOBODY = Caller()
CLIENT_LEFT = 499
"""The status that is counted for a client that left before its answer (nginx's)."""


class Gateway:
    """The gateway behind one port. Belongs to the loop it is started on."""

    def __init__(
        self,
        settings: GatewaySettings,
        *,
        names: Names,
        keys: KeyRing,
        caches: Caches,
        store: Store,
        upstream: Upstream,
        admission: Admission,
        meter: Meter,
        metrics: Metrics | None,
        search: Search | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`search`: over what runs have left; None: there is none."""
        self.settings = settings
        self.clock = clock
        self._names = names
        self._keys = keys
        self._recall = Recall(caches, store, self._live)
        self._upstream = upstream
        self.admission = admission
        self._meter = meter
        terms = terms_of(settings)
        self._asking = Asking(upstream, admission, meter, Costs(terms), clock)
        self._analyst = Analyst(settings, terms)
        self.searching = None if search is None else Searching(search, self, meter)
        self.metrics = metrics
        if metrics is not None:
            metrics.watch(IN_FLIGHT, lambda: {(): self.admission.in_flight})
            metrics.watch(WAITING, lambda: {(): self.admission.waiting})
            metrics.watch(RECHECKS, self._recall.checked)
            metrics.watch(KEYS_UNUSABLE, lambda: {(): float(keys.problem is not None)})
        self._tasks = tasks_of(settings.serve.tasks)
        self._started = False

    async def start(self) -> None:
        """Take requests."""
        if self.metrics is not None:
            await self.metrics.start()
        self._started = True

    def drain(self) -> None:
        """Take no new ones; those in flight are answered."""
        self.admission.drain()

    async def aclose(self) -> None:
        """End what is left and close all connections."""
        self.drain()
        await self._recall.aclose()
        await self._upstream.aclose()
        await self._meter.aclose()
        if self.metrics is not None:
            await self.metrics.aclose()

    def check_ready(self) -> None:
        """Raises Draining unless it takes requests."""
        if self.admission.draining:
            raise Draining("This replica is about to end: ask another one.", retry_after=1)
        if not self._started:
            raise Draining("This replica has not started yet.", retry_after=1)

    def visit(self) -> Visit:
        """Somebody comes to ask a model; ends with the last byte of the answer. Raises Draining and
        Overloaded."""
        return self.admission.visit()

    def seconds_left(self, client: Client) -> float:
        """Of the time that its request may take."""
        timeout = self.settings.serve.timeout if client.call is None else client.call.timeout
        return client.since + timeout - self.clock()

    def since(self, client: Client) -> float:
        """Seconds since its request arrived."""
        return self.clock() - client.since

    def observe(self, endpoint: str, client: Client) -> None:
        """A request is over: measure it."""
        if self.metrics is not None:
            status = client.status or CLIENT_LEFT
            seconds = self.since(client)
            self.metrics.observe(
                endpoint,
                status,
                client.call,
                client.about,
                seconds,
                client.headers,
                client.caller,
            )

    async def chat(self, client: Client, visit: Visit) -> Answer:
        """`POST /v1/chat/completions`."""
        key = self.key(client)
        body = await self.read(client, visit)
        check_chat(body)
        join = tokens_joined(client.headers, self.settings.serve.join_tokens)
        call = self._call("chat/completions", client, key, body, chat_tokens(body))
        answer = await self._answer(call, key, client.since)
        if join > 1 and isinstance(answer, Stream):
            return Stream(Joined(answer, join), answer.about)
        return answer

    async def embeddings(self, client: Client, visit: Visit) -> Answer:
        """`POST /v1/embeddings`."""
        key = self.key(client)
        body = await self.read(client, visit)
        check_embeddings(body, self.settings.serve.admission.array)
        call = self._call("embeddings", client, key, body, embedding_tokens(body["input"]))
        return await self._answer(call, key, client.since)

    async def analyze(self, client: Client, visit: Visit) -> Answer:
        """`POST /v1/analyze`: several chats about one document, each on its own."""
        key = self.key(client)
        document = read_document(await self.read(client, visit), self._analyst.default_model)
        if key is not None and key.rpm is not None and key.rpm < len(document.parts):
            said = f"This API key allows {key.rpm:g} requests a minute, and each part is one: ask "
            raise BadRequest(f"{said}for fewer in 'parts'.", param="parts", code="key_rate_too_low")

        about = {"messages": [{"role": "user", "content": document.text}]}
        targets = self._names.resolve(document.model, about)

        async def ask(
            body: Mapping[str, Any], part: str, usable: Callable[[bytes], bool]
        ) -> Answer:
            call = self._call("chat/completions", client, key, body, chat_tokens(body), targets)
            once = call.idempotency_key and f"{call.idempotency_key} {part}"
            call = replace(call, idempotency_key=once, usable=usable)
            return await self._answer(call, key, client.since)

        return await self._analyst.analyze(document, targets, ask)

    def models(self, client: Client) -> list[Entry]:
        """`GET /v1/models`: the names that the client may ask for."""
        key = self.key(client)
        entries = self._names.entries()
        if key is None:
            return entries
        return [entry for entry in entries if key.allows(entry.id, self._targets(entry.id))]

    def model(self, client: Client, name: str) -> Entry:
        """`GET /v1/models/NAME`. Raises UnknownModel."""
        for entry in self.models(client):
            if entry.id == name:
                return entry
        raise UnknownModel(f"The model {name[:100]!r} does not exist here.", param="model")

    async def read(self, client: Client, visit: Visit) -> dict[str, Any]:
        """The body. Raises BadRequest, also where it took all the time that the request has."""
        body = await visit.read(client.headers, client.body())
        timeout = self._timeout(task_named(client.headers.get(TASK_HEADER), self._tasks))
        if self.clock() >= client.since + timeout:
            raise BadRequest(
                f"The body did not arrive within the {timeout:g} s that the request may take.",
                code="body_timeout",
            )
        return read_object(body)

    def _timeout(self, task: Task | None) -> float:
        return task.timeout if task else self.settings.serve.timeout

    def key(self, client: Client) -> KeyRecord | None:
        """Whose key a client sends; None where none are set up. Raises NotAuthorized, Forbidden."""
        if self._keys.open:
            check_page(client.headers, self.settings.serve.host)
        key = self._keys.record(client.headers.get("authorization"))
        client.caller = _caller_of(key)
        return key

    def _targets(self, name: str) -> tuple[Target, ...]:
        """Whom `name` stands for; nobody where the text of a request decides it."""
        try:
            return self._names.resolve(name, {})
        except BadRequest:
            return ()

    def _call(
        self,
        endpoint: Endpoint,
        client: Client,
        key: KeyRecord | None,
        body: Mapping[str, Any],
        estimate: int,
        targets: tuple[Target, ...] | None = None,
    ) -> Call:
        """What the client asks for, of `targets`, else of whom its model stands for. Raises
        BadRequest, UnknownModel, Forbidden."""
        name = body["model"]
        task = task_named(client.headers.get(TASK_HEADER), self._tasks)
        targets = targets or self._names.resolve(name, body)
        if key is not None and not key.allows(name, targets):
            raise Forbidden(f"This API key may not ask the model {name[:100]!r}.", param="model")
        client.call = Call(
            endpoint=endpoint,
            body=body,
            caller=_caller_of(key),
            request_id=client.id,
            name=name,
            stream=endpoint == "chat/completions" and body.get("stream") is True,
            estimate=estimate,
            timeout=self._timeout(task),
            task=task,
            wish=self._recall.caches.wish(client.headers, body),
            idempotency_key=idempotency_key(client.headers),
            targets=targets,
        )
        return client.call

    async def _answer(self, call: Call, key: KeyRecord | None, since: float) -> Answer:
        return await self._recall.answer(call, partial(self._asking.ask, call, key, since))

    async def _live(self, call: Call) -> Answer:
        return await self._asking.ask(call, None, self.clock())


def _caller_of(key: KeyRecord | None) -> Caller:
    return NOBODY if key is None else Caller(key.name, key.tenant)
