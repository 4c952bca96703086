"""The `serve` section of fupan.yaml, and the providers and models beside it.

Invariant: an unknown key is an error; no value holds a key or a password, only the name of the
environment variable that does.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from serve.ask.redis_place import RedisPlace
from serve.ask.settings import Positive, Provider
from serve.models.settings import LOCAL, Models
from serve.search.choice import embedder_of
from serve.search.settings import SearchSettings

MIB = 2**20
Count = Annotated[int, Field(gt=0)]


class _Strict(BaseModel):
    # A URL with a password in it is refused, and not repeated.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class TaskSettings(_Strict):
    """A task that a caller can name in `x-fupan-task`."""

    max_tokens: Count
    timeout: Positive
    """Seconds."""


TASKS = {
    "classification": TaskSettings(max_tokens=10, timeout=15),
    "extraction": TaskSettings(max_tokens=200, timeout=30),
    "summary": TaskSettings(max_tokens=400, timeout=45),
    "qa": TaskSettings(max_tokens=500, timeout=60),
    "generation": TaskSettings(max_tokens=1_500, timeout=120),
    "code": TaskSettings(max_tokens=2_000, timeout=180),
}
"""The tasks that a caller can name."""


class CacheSettings(_Strict):
    """The caches of answers: which are on without being asked for, and how much they hold."""

    exact: bool = False
    near: bool = False
    semantic: bool = False
    bytes: Count = 256 * MIB
    """Of all answers that one replica holds in memory."""
    ttl: Positive = 3_600.0
    """Seconds that the answer to a short prompt is kept; see docs/cache.md for longer ones."""
    recheck: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The share of hits of the near and the semantic cache that are also asked live, to tell how
    many were wrong."""
    embedding: str = "bundled"
    """The model whose vectors the semantic cache compares."""


class AdmissionSettings(_Strict):
    """What one replica takes at most."""

    body_bytes: Count = 10 * MIB
    in_flight: Count = 200
    """Requests that are being answered."""
    waiting: Count = 1_000
    """Requests that wait for one of those; more are turned away with 503."""
    array: Count = 2_048
    """Inputs of one request for embeddings."""


class NameSettings(_Strict):
    """A name of your own for models: the first of `use` is asked, the next while that one fails."""

    use: Annotated[tuple[str, ...], Field(min_length=1)]
    """`provider/model` each."""


class AutoSettings(_Strict):
    """Which model `model: auto` asks, as `provider/model` or a name of your own."""

    fast: str
    balanced: str | None = None
    powerful: str


class ServeSettings(_Strict):
    """The `serve` section of fupan.yaml."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    keys_env: str | None = None
    """The environment variable that holds the hashed API keys, see docs/keys.md."""
    keys: Annotated[str | None, Field(min_length=1)] = None
    """A file of hashed API keys. Neither this nor `keys_env`: whoever reaches the port may ask."""
    redis_env: str | None = None
    """The environment variable that holds the URL of the Redis that replicas share."""
    redis: str | None = None
    """Its URL, where that holds no password."""
    state: str | None = None
    """The folder of what is kept over restarts; None: beside the user's answers."""
    names: dict[str, NameSettings] = {}
    auto: AutoSettings | None = None
    tasks: dict[str, TaskSettings] = TASKS
    """Those given here go before the built-in ones of the same name."""
    timeout: Positive = 120.0
    """Seconds for a request whose caller names no task."""
    join_tokens: Annotated[int, Field(ge=1, le=16)] = 1
    """Tokens that one event of a stream carries, for weak networks."""
    cache: CacheSettings = CacheSettings()
    admission: AdmissionSettings = AdmissionSettings()
    metrics: bool = True
    """Whether `/metrics` is there. In YAML also `on` and `off`."""

    @field_validator("redis")
    @classmethod
    def _holds_no_password(cls, value: str | None) -> str | None:
        if value is not None and RedisPlace.of(value).password is not None:
            raise ValueError("it holds a password: put the URL into a variable, named by redis_env")
        return value

    @field_validator("tasks")
    @classmethod
    def _beside_the_built_in(cls, value: dict[str, TaskSettings]) -> dict[str, TaskSettings]:
        return {**TASKS, **value}


class GatewaySettings(_Strict):
    """Everything the gateway is made of."""

    providers: dict[str, Provider] = {}
    models: Models = {}
    """The cluster's own."""
    serve: ServeSettings = ServeSettings()
    search: SearchSettings | None = None
    """Over what runs have left."""

    @model_validator(mode="after")
    def _has_models(self) -> Self:
        if not self.providers and not self.models:
            raise ValueError("there is nobody to ask: it needs providers, or models of its own")
        if LOCAL in self.providers:
            raise ValueError(
                f"providers has {LOCAL!r}, by which the cluster's own models are called: choose "
                "another name"
            )
        return self

    @model_validator(mode="after")
    def _can_search(self) -> Self:
        if self.search is not None:
            embedder_of(self.search, self.models)
        return self
