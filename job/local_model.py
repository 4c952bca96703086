"""The cluster's own generators as the provider of a run: `--provider local` or `local/NAME`.

Invariant: a run starts no deployment and ends none. It asks the one that runs, else an actor that
holds the same server and ends with the run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import orjson
import ray
from pydantic import field_validator
from ray.exceptions import RayActorError
from ray.util import list_named_actors

from job.errors import UsageError
from job.local_actor import ActorCalls, GeneratorHost
from job.local_schema import bounded, pack_schema
from job.ray_reason import reason_in
from serve.ask.contract import Model, Reply
from serve.ask.limiter_server import NAMESPACE
from serve.ask.settings import Provider
from serve.ask.wire import usage_of
from serve.models.contract import ModelAnswers
from serve.models.placement import place
from serve.models.settings import LOCAL, GeneratorSettings

ENDPOINT = "chat/completions"
PATIENCE = 10.0
"""Times the limit of a call that a model of the cluster is given. The limits are for providers that
write 20 tokens a second; of 32 streams on two cores each writes some two."""
SECONDS = 900.0
"""That a call is given at most."""
PACK = "retrospective"
"""The name of the schema of an analysis request."""
SHARE = 8
"""Of the context that a pack is, at least SMALLEST_PACK tokens."""
SMALLEST_PACK = 200
RESTARTS = 1
"""Of the actor: what killed it twice would kill it again."""
LOADING_SECONDS = 60.0
"""After which it is said that the model is not loaded yet, and what it may wait for."""
_CONTROLLER = {"name": "SERVE_CONTROLLER_ACTOR", "namespace": "serve"}


class LocalProvider(Provider):
    """A generator of the cluster. `entry`: whose application answers for it; `generator`: what is
    loaded where none does."""

    entry: str
    generator: GeneratorSettings

    @field_validator("base_url")
    @classmethod
    def _http_url(cls, value: str) -> str:
        """No URL: it is reached through Ray."""
        return value

    @property
    def pack_tokens(self) -> int:
        """The size of packs, where nobody names one: of the context, the most goes to the answer,
        and to tokens of a small vocabulary, of which there are more than we count."""
        return max(SMALLEST_PACK, self.context // SHARE)

    @property
    def is_loopback(self) -> bool:
        """It needs no key."""
        return True

    def connect(self) -> Model:
        """See `Provider.connect`."""
        return LocalModel(self)


class LocalModel:
    """Implements `serve.ask.contract.Model`."""

    def __init__(self, provider: LocalProvider, calls: ModelAnswers | None = None) -> None:
        """`calls`: of whom it is asked; None: whoever answers for it in this cluster."""
        self._provider = provider
        self._given = calls

    @cached_property
    def _calls(self) -> ModelAnswers:
        if self._given is not None:
            return self._given
        try:
            return ActorCalls(ray.get_actor(_actor_name(self._provider), NAMESPACE))
        except ValueError:
            from serve.models.calls import RayCalls

            return RayCalls({self._provider.models[0]: self._provider.entry})

    async def complete(
        self, body: Mapping[str, Any], limit: float
    ) -> tuple[Reply, Mapping[str, str]]:
        """See `Model.complete`. `limit`: see PATIENCE."""
        began = time.monotonic()
        most = min(SECONDS, PATIENCE * limit)
        content = await self._calls.answer(body["model"], ENDPOINT, fitted(body), most)
        answer = orjson.loads(content)
        choice = answer["choices"][0]
        seconds = time.monotonic() - began
        usage = usage_of(answer["usage"])
        text, finish = choice["message"]["content"], choice["finish_reason"]
        return Reply(text, finish, usage, answer["model"], seconds), {}

    async def aclose(self) -> None:
        """There is nothing to close."""


def start_local(provider: Provider | None) -> Any:
    """Have somebody answer for `provider`: nothing to do for one that is not of the cluster, or
    that is deployed; else an actor, loaded, which lives as long as the handle, placed as a replica
    would be. Raises UsageError where its model cannot be loaded."""
    if not isinstance(provider, LocalProvider) or _is_deployed(provider.entry):
        return None
    where = place(provider.generator, ray.cluster_resources().get("GPU", 0.0))
    actor = ray.remote(GeneratorHost).options(
        name=_actor_name(provider),
        namespace=NAMESPACE,
        max_restarts=RESTARTS,
        max_task_retries=RESTARTS,
        max_concurrency=provider.limits.max_concurrency + 1,
        # Without `cpus` none is reserved: it waits far longer for packs than it computes.
        **where.actor_options,
    )
    handle = actor.remote(provider.generator.model_dump(mode="json", exclude_defaults=True))
    ready = handle.ready.remote()
    if not ray.wait([ready], timeout=LOADING_SECONDS)[0]:
        print(
            f"fupan: {provider.base_url} is still being loaded, or waits for {where.said}",
            file=sys.stderr,
        )
    try:
        ray.get(ready)
    except RayActorError as error:
        raise UsageError(f"--provider {provider.base_url}: {reason_in(str(error))}") from error
    return handle


def fitted(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """`body` with a JSON schema that a small model keeps to."""
    wanted = body.get("response_format") or {}
    if wanted.get("type") != "json_schema":
        return body
    named = wanted["json_schema"]
    if named["name"] == PACK:
        # Not `splitlines`: JSON may hold other ends of lines than this.
        lines = body["messages"][-1]["content"].split("\n")
        schema = pack_schema([orjson.loads(line)["id"] for line in lines if line])
        # It ends by itself, and the room that is left is counted better where the tokens are.
        body = {name: value for name, value in body.items() if name != "max_tokens"}
    else:
        schema = bounded(named["schema"])
    tight = {**wanted, "json_schema": {**named, "schema": schema}}
    return {**body, "response_format": tight}


def _actor_name(provider: LocalProvider) -> str:
    """Of one job: an actor does not outlive who started it."""
    job = ray.get_runtime_context().get_job_id()
    return f"{LOCAL}-{provider.models[0]}-{job}"


def _is_deployed(entry: str) -> bool:
    if _CONTROLLER not in list_named_actors(all_namespaces=True):
        return False
    from job.local_deployed import is_deployed

    return is_deployed(entry)
