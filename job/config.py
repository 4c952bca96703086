"""Settings of a run: flags over fupan.yaml over defaults; secrets only from the environment.

Invariant: what is resolved here is complete and checked; no station reads a flag, a file or an
environment variable of its own. An unknown key in fupan.yaml is an error.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from job.errors import UsageError
from job.pack import WIRE_TOKENS, Mode
from job.records import KINDS, Kind
from serve.ask.answers import default_path
from serve.ask.settings import LimitSettings, Provider

EXTRACTIVE = "extractive"
OPENAI_URL = "https://api.openai.com/v1"
CONFIG_FILE = "fupan.yaml"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class InputSettings(_Strict):
    """One input of fupan.yaml: where it is and what its fields are called."""

    path: str
    kind: Kind | None = None
    map: dict[str, str] = {}
    skip: tuple[str, ...] = ()


class RunSection(_Strict):
    """The `run` section of fupan.yaml."""

    provider: str | None = None
    date: str | None = None
    timezone: str | None = None
    language: Literal["auto", "zh", "en"] = "auto"
    out: str | None = None
    mode: Mode = "packed"
    max_failed: Annotated[float, Field(ge=0, le=1)] = 0.0


class PrivacySection(_Strict):
    """What is masked: kinds by name (all become aliases, `alias` only lists those that are wanted
    for that), own patterns by name, and for how many days answers are kept (None: for good)."""

    mask: tuple[str, ...] | None = None
    alias: tuple[str, ...] | None = None
    own: dict[str, str] = {}
    keep_days: Annotated[int, Field(gt=0)] | None = None


class ConfigFile(_Strict):
    """fupan.yaml."""

    providers: dict[str, Provider] = {}
    run: RunSection = RunSection()
    inputs: tuple[InputSettings, ...] = ()
    privacy: PrivacySection = PrivacySection()
    serve: dict[str, Any] = {}
    """The online side's own section, which the job does not read."""


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line said; None: nothing."""

    inputs: tuple[str, ...] = ()
    out: str | None = None
    base_url: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    rpm: float | None = None
    tpm: float | None = None
    burst: int | None = None
    max_concurrency: int | None = None
    context: int | None = None
    pack_tokens: int | None = None
    mode: Mode | None = None
    provider: str | None = None
    language: Literal["auto", "zh", "en"] | None = None
    since: str | None = None
    until: str | None = None
    date: str | None = None
    timezone: str | None = None
    kind: tuple[str, ...] = ()
    sample: int | None = None
    max_failed: float | None = None
    answers: str | None = None
    fresh: bool = False
    overwrite: bool = False
    mask: bool = True
    config: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """A run's settings, resolved. `provider` None: the built-in analyst. `explicit_date`: the day
    the user named, None where it is only today's."""

    inputs: tuple[InputSettings, ...]
    out: Path
    provider_name: str
    provider: Provider | None
    model: str
    mode: Mode
    language: Literal["auto", "zh", "en"]
    zone: ZoneInfo
    reference: date
    explicit_date: date | None
    since: datetime | None
    until: datetime | None
    kinds: tuple[tuple[str, Kind], ...]
    sample: int | None
    max_failed: float
    answers: Path
    fresh: bool
    overwrite: bool
    pack_tokens: int
    mask: bool
    privacy: PrivacySection = field(default_factory=PrivacySection)

    @property
    def extractive(self) -> bool:
        """Whether the built-in analyst is used."""
        return self.provider is None


def load_config(path: str | None) -> ConfigFile:
    """fupan.yaml at `path`, or in the current folder if there is one.

    Raises UsageError naming file, key and what is wrong with it.
    """
    file = Path(path) if path else Path(CONFIG_FILE)
    if not path and not file.exists():
        return ConfigFile()
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        return ConfigFile.model_validate(data)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{file} is not valid YAML: {error}") from error
    except ValidationError as error:
        raise UsageError(f"{file}: {validation_text(error)}") from error


def resolve(flags: Flags) -> Settings:
    """The settings of a run. Raises UsageError where they do not make sense."""
    config = load_config(flags.config)
    zone = _zone(flags.timezone or config.run.timezone)
    explicit = _date(flags.date or config.run.date, zone)
    reference = explicit or datetime.now(zone).date()
    inputs = tuple(InputSettings(path=path) for path in flags.inputs) or config.inputs
    if not inputs:
        raise UsageError("no input: name files or folders, or list them under inputs in fupan.yaml")
    inputs = tuple(
        spec.model_copy(update={"path": _dated(spec.path, reference)}) for spec in inputs
    )
    name, provider, model = _provider(flags, config)
    return Settings(
        inputs=inputs,
        out=Path(_dated(flags.out or config.run.out or "retro", reference)),
        provider_name=name,
        provider=provider,
        model=model,
        mode=flags.mode or config.run.mode,
        language=flags.language or config.run.language,
        zone=zone,
        reference=reference,
        explicit_date=explicit,
        since=_moment(flags.since, zone, reference, "--since"),
        until=_moment(flags.until, zone, reference, "--until"),
        kinds=tuple(_kind(text) for text in flags.kind),
        sample=flags.sample,
        max_failed=config.run.max_failed if flags.max_failed is None else flags.max_failed,
        answers=Path(flags.answers).absolute() if flags.answers else default_path(),
        fresh=flags.fresh,
        overwrite=flags.overwrite,
        pack_tokens=flags.pack_tokens or WIRE_TOKENS["fast"],
        mask=flags.mask,
        privacy=config.privacy,
    )


def _provider(flags: Flags, config: ConfigFile) -> tuple[str, Provider | None, str]:
    """The provider's name, its settings with the flags over them, and the model."""
    wanted = flags.provider or config.run.provider
    if flags.base_url is None and wanted == EXTRACTIVE:
        return EXTRACTIVE, None, EXTRACTIVE
    if flags.base_url is None and wanted is None:
        if not config.providers:
            return EXTRACTIVE, None, EXTRACTIVE
        wanted = next(iter(config.providers))
    name, _, model = (wanted or "openai").partition("/")
    if name == "local":
        raise UsageError("--provider local is not available yet; name a provider or --base-url")
    known = config.providers.get(name)
    if known is None and flags.base_url is None and name != "openai":
        names = ", ".join(sorted(config.providers)) or "none"
        raise UsageError(f"no provider {name!r}; fupan.yaml defines: {names}")
    values: dict[str, Any] = known.model_dump(by_alias=True) if known else {}
    if known is None and flags.base_url is None:
        values |= {"base_url": OPENAI_URL, "key_env": "OPENAI_API_KEY"}
    given = {"base_url": flags.base_url, "key_env": flags.api_key_env, "context": flags.context}
    values |= {key: value for key, value in given.items() if value is not None}
    model = flags.model or model or (known.models[0] if known else "")
    if not model:
        raise UsageError("name the model with --model")
    values["models"] = (model,)
    limits = values.get("limits") or LimitSettings().model_dump()
    for key in ("rpm", "tpm", "burst", "max_concurrency"):
        value = getattr(flags, key)
        if value is not None:
            limits = {**limits, key: value}
    values["limits"] = limits
    try:
        return name, Provider.model_validate(values), model
    except ValidationError as error:
        raise UsageError(validation_text(error)) from error


def validation_text(error: ValidationError) -> str:
    """The first thing that is wrong, with the key it is wrong in."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}"


def _zone(name: str | None) -> ZoneInfo:
    """The zone called `name`, else this machine's, else UTC."""
    local = Path("/etc/localtime")
    if name is None:
        name = os.environ.get("TZ", "").lstrip(":")
        if not name and local.is_symlink():
            name = str(local.resolve()).partition("zoneinfo/")[2]
        try:
            return ZoneInfo(name or "UTC")
        except (ZoneInfoNotFoundError, ValueError):
            return ZoneInfo("UTC")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise UsageError(f"unknown time zone {name!r}; use a name like Asia/Shanghai") from error


def _date(text: str | None, zone: ZoneInfo) -> date | None:
    today = datetime.now(zone).date()
    named: Mapping[str, date] = {"today": today, "yesterday": today - timedelta(days=1)}
    if text is None or text in named:
        return None if text is None else named[text]
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is no date; use YYYY-MM-DD, today or yesterday") from error


def _moment(text: str | None, zone: ZoneInfo, reference: date, flag: str) -> datetime | None:
    """A point in time: ISO, or HH:MM on the reference day."""
    if text is None:
        return None
    try:
        if len(text) <= 8 and ":" in text:
            text = f"{reference.isoformat()}T{text}"
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{flag} {text!r} is no time; use 2026-03-14T08:00 or 08:00") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def _kind(text: str) -> tuple[str, Kind]:
    pattern, _, kind = text.rpartition("=")
    for known in KINDS:
        if kind == known and pattern:
            return pattern, known
    raise UsageError(f"--kind {text!r}: use GLOB=KIND with KIND one of {', '.join(KINDS)}")


def _dated(path: str, day: date) -> str:
    return path.replace("{date}", day.isoformat())
