"""fupan.yaml: what may stand in it, and how it is read.

Invariant: an unknown key is an error, and so is a value that makes no sense; what is said about
either names the key and never repeats the value of one that can hold a secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)

from job.errors import UsageError
from job.pack.packing import Mode
from job.records import Kind
from serve.ask.once_yaml import DoubledKey, load_yaml
from serve.ask.settings import Provider
from serve.gateway.settings import ServeSettings
from serve.models.settings import LOCAL, Models
from serve.search.settings import SearchSettings

CONFIG_FILE = "fupan.yaml"
EXTRACTIVE = "extractive"
"""The built-in analyst, by the name it is asked for."""
BUILT_IN = (EXTRACTIVE, LOCAL)
"""Names that no provider of fupan.yaml may have."""

RECORD_FIELDS = ("text", "time", "user", "session", "service", "host", "level", "rating")
"""What `map` can name: fields of a record that an input may call otherwise."""


def _day(value: object) -> object:
    """YAML reads an unquoted 2026-03-14 as a date."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    return value


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class InputSettings(_Strict):
    """One input of fupan.yaml: where it is and what its fields are called. `label`: whose costs
    it is, a team or a product."""

    path: str
    kind: Kind | None = None
    map: dict[str, str] = {}
    skip: tuple[str, ...] = ()
    label: str | None = None

    @field_validator("map")
    @classmethod
    def _fields_exist(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if name not in RECORD_FIELDS:
                raise ValueError(f"no field {name!r}; known are {', '.join(RECORD_FIELDS)}")
        return value


class RunSection(_Strict):
    """The `run` section of fupan.yaml."""

    provider: str | None = None
    date: Annotated[str | None, BeforeValidator(_day)] = None
    timezone: str | None = None
    language: Literal["auto", "zh", "en"] = "auto"
    out: str | None = None
    mode: Mode = "packed"
    max_failed: Annotated[float, Field(ge=0, le=1)] = 0.0
    max_spend: Annotated[float | None, Field(gt=0, allow_inf_nan=False)] = None
    instructions: str | None = None
    compress_instructions: bool = False
    canary: Annotated[float | None, Field(gt=0, le=100)] = None
    baseline: str | None = None
    known: str | None = None
    answers: str | None = None


class PrivacySection(_Strict):
    """What is masked: `mask`, the kinds by name (None: all), `alias`, further ones (every kind
    becomes aliases; `alias` never takes one away), own patterns by name, and for how many days
    answers are kept (None: for good)."""

    mask: tuple[str, ...] | None = None
    alias: tuple[str, ...] = ()
    own: dict[str, str] = {}
    keep_days: Annotated[int, Field(gt=0)] | None = None


class ConfigFile(_Strict):
    """fupan.yaml."""

    providers: dict[str, Provider] = {}
    models: Models = {}
    """Those that the cluster serves itself."""
    run: RunSection = RunSection()
    inputs: tuple[InputSettings, ...] = ()
    privacy: PrivacySection = PrivacySection()
    serve: ServeSettings = ServeSettings()
    """The gateway, of which the job reads nothing."""
    search: SearchSettings | None = None
    """Over what runs have left: read by the gateway, and by nothing of the job."""

    @field_validator("providers")
    @classmethod
    def _names_can_be_asked_for(cls, value: dict[str, Provider]) -> dict[str, Provider]:
        for name in value:
            if name in BUILT_IN:
                raise ValueError(f"{name!r} is the name of something built in; choose another")
            if not name or "/" in name:
                raise ValueError(f"{name!r} is no name for a provider: NAME/MODEL picks a model")
        return value


def load_config(path: str | None) -> ConfigFile:
    """fupan.yaml at `path`, or in the current folder if there is one.

    Raises UsageError naming file, key and what is wrong with it.
    """
    file = Path(path) if path else Path(CONFIG_FILE)
    if not path and not file.exists():
        return ConfigFile()
    try:
        data = load_yaml(file.read_text(encoding="utf-8"))
        return ConfigFile.model_validate({} if data is None else data)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except yaml.YAMLError as error:
        what = "" if isinstance(error, DoubledKey) else " is not valid YAML"
        raise UsageError(f"{file}{what}{_where(error)}") from error
    except ValidationError as error:
        raise UsageError(f"{file}: {validation_text(error, ConfigFile)}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8: save it as UTF-8") from error
    except ValueError as error:
        # A date of YAML's own that does not exist.
        raise UsageError(f"{file}: {error}") from error


def _where(error: yaml.YAMLError) -> str:
    """Place and problem. Not the error's own text, which repeats the line."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return f"{place}: {problem}" if problem else place


def validation_text(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """The first thing that is wrong, with the key it is wrong in. `model`: what was to be read, to
    tell the keys it knows."""
    first = error.errors(include_input=False, include_url=False)[0]
    kinds = {kind.__name__ for kind in _models_in(Models)}
    where = ".".join(str(part) for part in first["loc"] if part not in kinds)
    said = _plainly(first, _keys_at(model, first["loc"][:-1]) if model else ())
    return f"{where}: {said}" if where else said


def _plainly(error: Any, known: tuple[str, ...]) -> str:
    """What is wrong, in the words of a person who writes YAML."""
    kind, said = error["type"], str(error["msg"]).removeprefix("Value error, ")
    if kind == "extra_forbidden":
        like = get_close_matches(str(error["loc"][-1]), known, 1)
        meant = f", did you mean {like[0]}?" if like else ""
        return f"unknown key{meant}" + (f" (known: {', '.join(known)})" if known else "")
    if kind == "literal_error":
        return f"must be {error['ctx']['expected']}"
    if kind == "too_short":
        least = error["ctx"]["min_length"]
        return f"must have at least {least} {'entry' if least == 1 else 'entries'}"
    return _PLAINLY.get(kind, said)


_PLAINLY = {
    "missing": "is missing",
    "model_type": "must hold keys and values (a dictionary)",
    "dict_type": "must hold keys and values (a dictionary)",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
}


def _keys_at(model: Any, place: tuple[int | str, ...]) -> tuple[str, ...]:
    """The keys that are known at a place in a model."""
    kinds: dict[str, type[BaseModel]] = {}
    for part in place:
        if part in kinds:
            model = kinds[str(part)]
        elif issubclass(model, BaseModel) and part in model.model_fields:
            annotation = model.model_fields[str(part)].annotation
            kinds = {kind.__name__: kind for kind in _models_in(annotation)}
            model = next(iter(kinds.values()), BaseModel)
    return tuple(model.model_fields)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)
