"""Which generator of the cluster a run asks, from flags and fupan.yaml.

Invariant: a flag that has no meaning for a model of the cluster is an error, never ignored.
"""

from __future__ import annotations

from job.config_file import ConfigFile
from job.errors import UsageError
from job.flags import Flags
from job.local_model import LocalProvider
from serve.ask.settings import ANY_MODEL, LimitSettings, Prices
from serve.models.settings import LOCAL, GeneratorSettings, served

BUNDLED = "smollm2-135m"
"""What `local` means where fupan.yaml names no generator: it and its small context."""
AT_ONCE = 4
"""Requests in flight: packs of a small model are read in a second or two each, and share what they
begin with."""
PLACED = ("gpus", "accelerator_type", "cpus", "memory")
"""Settings that say where a replica runs."""
_MEANINGLESS = ("base_url", "api_key_env", "context", "rpm", "tpm", "burst")


def choose_local(
    flags: Flags, config: ConfigFile, name: str
) -> tuple[str, LocalProvider, tuple[str, ...]]:
    """The provider of a run on the generator `name`; empty: the one that --model names, else the
    first in fupan.yaml. Raises UsageError."""
    for flag in _MEANINGLESS:
        if getattr(flags, flag) is not None:
            raise UsageError(
                f"--{flag.replace('_', '-')} cannot go with --provider {LOCAL}: what holds for a "
                "model of the cluster is under models in fupan.yaml"
            )
    known = {
        model: (settings, entry)
        for model, settings, entry in served(config.models)
        if isinstance(settings, GeneratorSettings)
    } or {BUNDLED: (GeneratorSettings(generator=BUNDLED), BUNDLED)}
    wanted = flags.model or name or next(iter(known))
    if wanted not in known:
        raise UsageError(
            f"no generator {wanted!r} under models in fupan.yaml; there are: {', '.join(known)}"
        )
    settings, entry = known[wanted]
    where = config.models.get(entry, settings)
    placed = {key: getattr(where, key) for key in PLACED}
    provider = LocalProvider(
        base_url=f"{LOCAL}/{wanted}",
        models=(wanted,),
        context=settings.context,
        limits=LimitSettings(max_concurrency=flags.max_concurrency or AT_ONCE),
        json_mode="schema",
        prices={ANY_MODEL: settings.prices or Prices()},
        entry=entry,
        # Of a pool, where it runs is the pool's to say.
        generator=settings.model_copy(update=placed),
    )
    return LOCAL, provider, (wanted,)
