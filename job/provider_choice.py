"""Which model is asked, from flags and fupan.yaml.

Invariant: a key goes to no other server than the one its owner named it for: where --base-url
leads away from the configured provider, the configured key stays behind, and so does what only that
server promises: its prices, its tiers, the fields it takes. A flag that has no meaning is an error,
never ignored.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from job.config_file import BUILT_IN, EXTRACTIVE, ConfigFile, validation_text
from job.errors import UsageError
from job.flags import Flags
from job.local_choice import choose_local
from serve.ask.route import TIERS
from serve.ask.settings import LimitSettings, Provider, Tiers
from serve.models.settings import LOCAL

OPENAI = "openai"
"""The one provider that is known without fupan.yaml."""
OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY_ENV = "OPENAI_API_KEY"

_PROVIDER_FLAGS = {"base_url": "base_url", "api_key_env": "key_env", "context": "context"}
"""Flags that replace a value of the provider, and its name there."""
_LIMIT_FLAGS = ("rpm", "tpm", "burst", "max_concurrency")
_MODEL_FLAGS = (
    *("base_url", "model", "api_key_env", *_LIMIT_FLAGS, "context", "pack_tokens", "mode"),
    *("max_spend", "instructions", "compress_instructions", "canary"),
)
"""Flags that say something about a model that is asked."""
_OF_THE_SERVER = ("key_env", "prices", "tiers", "extra_body", "json")
"""Values of a provider that hold for its own server only; the others are of its models."""
_DEFAULT_PORTS = {"http": 80, "https": 443}

AUTO = "auto"
"""Instead of a model: the tiers of the provider."""

Choice = tuple[str, Provider | None, tuple[str, ...]]
"""The provider's name, its settings (None: the built-in analyst), its models that are asked, from
the cheapest to the most powerful."""


def choose_provider(flags: Flags, config: ConfigFile) -> Choice:
    """The provider of a run, with the flags over its settings. Raises UsageError."""
    wanted = flags.provider or config.run.provider
    if flags.provider is None and wanted in BUILT_IN and flags.base_url is not None:
        wanted = None
    if wanted == EXTRACTIVE or (wanted is None and not (flags.base_url or config.providers)):
        _refuse_model_flags(flags, wanted)
        return EXTRACTIVE, None, (EXTRACTIVE,)
    if wanted is None and flags.base_url is None:
        wanted = next(iter(config.providers))
    name, _, model = (wanted or OPENAI).partition("/")
    if name == EXTRACTIVE:
        raise UsageError(f"provider {name} has no models to choose from; name another one")
    if name == LOCAL:
        return choose_local(flags, config, model)
    values = _of_server(_known_values(name, config, asked_for=wanted is not None), flags.base_url)
    model = flags.model or model or (values.get("models") or ("",))[0]
    if not model:
        raise UsageError("name the model with --model")
    models = _models(model, values)
    try:
        values = _with_flags(values, flags) | {"models": models, "tiers": None}
        provider = Provider.model_validate(values)
    except ValidationError as error:
        raise UsageError(_in_flags(validation_text(error))) from error
    return name, provider, models


def _models(model: str, values: dict[str, Any]) -> tuple[str, ...]:
    """The models that `model` names. Raises UsageError where it names none."""
    if model == AUTO:
        tiers = values.get("tiers")
        if not tiers:
            raise UsageError(
                "--model auto needs tiers: name them under the provider in fupan.yaml (tiers: "
                "{fast: ..., powerful: ...}), or several models, --model SMALL,LARGE"
            )
        return Tiers.model_validate(tiers).models
    models = tuple(name.strip() for name in model.split(","))
    if not all(models) or len(set(models)) < len(models) or len(models) > len(TIERS):
        raise UsageError(
            f"--model {model!r}: one model, or up to {len(TIERS)} different ones, cheapest first, "
            "with commas between"
        )
    return models


def _refuse_model_flags(flags: Flags, wanted: str | None) -> None:
    given = [_flag(name) for name in _MODEL_FLAGS if getattr(flags, name) not in (None, False)]
    if not given:
        return
    if flags.provider is not None:
        raise UsageError(
            f"--provider {EXTRACTIVE} asks no model: {', '.join(given)} cannot go with it"
        )
    missing = "" if wanted is None else f" (fupan.yaml says provider: {wanted})"
    raise UsageError(
        f"{', '.join(given)} without a provider{missing}: add --base-url, or name one with "
        "--provider"
    )


def _known_values(name: str, config: ConfigFile, asked_for: bool) -> dict[str, Any]:
    """What is known of the provider; nothing where only --base-url was given."""
    if name in config.providers:
        return config.providers[name].model_dump(by_alias=True)
    if not asked_for:
        return {}
    if name != OPENAI:
        names = ", ".join(sorted(config.providers)) or "none"
        raise UsageError(f"no provider {name!r}; fupan.yaml defines: {names}")
    return {"base_url": OPENAI_URL, "key_env": OPENAI_KEY_ENV}


def _with_flags(values: dict[str, Any], flags: Flags) -> dict[str, Any]:
    given = {key: getattr(flags, flag) for flag, key in _PROVIDER_FLAGS.items()}
    limits = {flag: getattr(flags, flag) for flag in _LIMIT_FLAGS}
    changed = {key: value for key, value in given.items() if value is not None}
    known = values.get("limits") or LimitSettings().model_dump()
    return {
        **values,
        **changed,
        "limits": known | {key: value for key, value in limits.items() if value is not None},
    }


def _of_server(values: dict[str, Any], base_url: str | None) -> dict[str, Any]:
    """What holds of `values` at `base_url`; None: the URL they name."""
    if base_url is None or _origin(base_url) == _origin(values.get("base_url")):
        return values
    return {name: value for name, value in values.items() if name not in _OF_THE_SERVER}


def _origin(url: str | None) -> tuple[str, str, int | None] | None:
    """Scheme, host and port; None for what is no URL (`Provider` says so)."""
    try:
        parts = urlsplit(url or "")
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None
    return parts.scheme, parts.hostname or "", port


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _in_flags(text: str) -> str:
    """What is wrong with a value, under the name of the flag it came by."""
    where, colon, said = text.partition(": ")
    named = {key: _flag(flag) for flag, key in _PROVIDER_FLAGS.items()}
    named |= {f"limits.{name}": _flag(name) for name in _LIMIT_FLAGS}
    return f"{named.get(where, where)}{colon}{said}"
