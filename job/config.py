"""Settings of a run: flags over fupan.yaml over defaults; secrets only from the environment.

Invariant: what is resolved here is complete and checked; no station reads a flag, a file or an
environment variable of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

from job.config_file import (
    CONFIG_FILE,
    ConfigFile,
    InputSettings,
    PrivacySection,
    load_config,
)
from job.config_times import day_at, deadline_at, moment_at, zone_of
from job.errors import UsageError
from job.flags import Flags
from job.history.known import KNOWN_FILE, load_known
from job.local_model import LocalProvider
from job.own_instructions import check_compression, read_instructions
from job.pack.packing import Mode
from job.provider_choice import choose_provider
from job.records import KINDS, Kind
from job.spend.prices import check_cap
from job.storage.place import Place
from serve.ask.answers import default_path
from serve.ask.answers_at import AnswersAt
from serve.ask.answers_redis import PASSWORD, AnswersInRedis
from serve.ask.redis_place import RedisPlace, is_redis
from serve.ask.settings import Provider
from serve.ask.uris import without_secrets

SMALLEST_PACK = 200
"""Input tokens: below, ordinary records no longer fit a pack."""
_DAY = 86_400
_MOST_DAYS = 36_500
"""A century: Redis takes no time that has more than 19 digits of milliseconds."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A run's settings, resolved. `provider` None: the built-in analyst. `model`: the name of the
    one asked, or of all `tiers` together (from the cheapest to the most powerful). `explicit_date`:
    the day the user named, None where it is only today's. `pack_tokens`: None, the size of packs
    finds itself. `max_spend`: money in the currency of the provider's prices, over all commands
    that go on in the same folder. `deadline`: when the report is to be there. `own_instructions`:
    their text. `canary`: the share of records asked both ways first. `answers`: the file of paid
    answers; where `redis` keeps them, only what lies beside it is used: the account of spend and
    the key of the aliases."""

    inputs: tuple[InputSettings, ...]
    out: Place
    provider_name: str
    provider: Provider | None
    model: str
    tiers: tuple[str, ...]
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
    redis: AnswersInRedis | None
    baseline: str | None
    known: Path | None
    fresh: bool
    overwrite: bool
    pack_tokens: int | None
    max_spend: Decimal | None
    deadline: datetime | None
    own_instructions: str
    compress_instructions: bool
    canary: float | None
    mask: bool
    privacy: PrivacySection = field(default_factory=PrivacySection)

    @property
    def store(self) -> AnswersAt:
        """Where paid answers are kept."""
        return self.redis or self.answers


def resolve(flags: Flags) -> Settings:
    """The settings of a run. Raises UsageError where they do not make sense."""
    _check_ranges(flags)
    config = load_config(flags.config)
    zone = zone_of(flags.timezone or config.run.timezone)
    explicit = day_at(flags.date or config.run.date, zone)
    reference = explicit or datetime.now(zone).date()
    inputs = tuple(InputSettings(path=path) for path in flags.inputs) or config.inputs
    if not inputs:
        raise UsageError("no input: name files or folders, or list them under inputs in fupan.yaml")
    inputs = tuple(
        spec.model_copy(update={"path": _dated(spec.path, reference)}) for spec in inputs
    )
    since = moment_at(flags.since, zone, reference, "--since")
    until = moment_at(flags.until, zone, reference, "--until")
    if since and until and since >= until:
        raise UsageError(f"--since {since} is not before --until {until}: no record lies between")
    name, provider, models = choose_provider(flags, config)
    own = read_instructions(flags.instructions or config.run.instructions)
    answers = answers_at(flags.answers or config.run.answers, config.privacy.keep_days)
    compress = flags.compress_instructions or config.run.compress_instructions
    return Settings(
        inputs=inputs,
        out=Place.of(_dated(flags.out or config.run.out or "retro", reference)),
        provider_name=name,
        provider=provider,
        model=",".join(models),
        tiers=models,
        mode=flags.mode or config.run.mode,
        language=flags.language or config.run.language,
        zone=zone,
        reference=reference,
        explicit_date=explicit,
        since=since,
        until=until,
        kinds=tuple(_kind(text) for text in flags.kind),
        sample=flags.sample,
        max_failed=config.run.max_failed if flags.max_failed is None else flags.max_failed,
        answers=answers if isinstance(answers, Path) else default_path(),
        redis=None if isinstance(answers, Path) else answers,
        baseline=flags.baseline or config.run.baseline,
        known=_known(flags.known, config, flags.config),
        fresh=flags.fresh,
        overwrite=flags.overwrite,
        pack_tokens=flags.pack_tokens or _pack_tokens(provider),
        max_spend=check_cap(_money(flags.max_spend or config.run.max_spend), provider, models),
        deadline=deadline_at(flags.deadline, zone),
        own_instructions=own,
        compress_instructions=check_compression(compress, own),
        canary=_canary(flags, config),
        mask=flags.mask,
        privacy=config.privacy,
    )


def _pack_tokens(provider: Provider | None) -> int | None:
    return provider.pack_tokens if isinstance(provider, LocalProvider) else None


def _check_ranges(flags: Flags) -> None:
    """Raise UsageError for a number that makes no sense; those of the provider it checks itself."""
    if flags.sample is not None and flags.sample < 1:
        raise UsageError("--sample: at least 1 record")
    if flags.pack_tokens is not None and flags.pack_tokens < SMALLEST_PACK:
        raise UsageError(f"--pack-tokens: at least {SMALLEST_PACK}")
    # Written so that nan fails.
    if flags.max_spend is not None and not 0 < flags.max_spend < math.inf:
        raise UsageError("--max-spend: an amount above 0, such as 2.50")
    if flags.canary is not None and not 0 < flags.canary <= 100:
        raise UsageError("--canary: a percentage of the records, above 0 to 100, such as 10")
    if flags.max_failed is not None and not 0 <= flags.max_failed <= 1:
        raise UsageError("--max-failed: a share between 0 and 1, such as 0.01 for 1 %")


def answers_at(named: str | None, keep_days: int | None = None) -> AnswersAt:
    """The store of answers, whether or not it exists: the one named, else the user's own.
    `keep_days`: for how long a Redis keeps them, None: for good. Raises UsageError."""
    if named is None or not is_redis(named):
        return _local(named, "--answers") if named else default_path()
    try:
        place = RedisPlace.of(named)
    except ValueError as error:
        raise UsageError(f"--answers {without_secrets(named)}: {error}") from None
    if place.password is not None:
        raise UsageError(
            f"--answers {place}: keep the password out of the command and of fupan.yaml; the "
            f"environment variable {PASSWORD} holds it"
        )
    return AnswersInRedis(place, keep_days and min(keep_days, _MOST_DAYS) * _DAY)


def known_file(flag: str | None, config: ConfigFile, config_path: str | None) -> Path:
    """The file of known problems, whether or not it exists: the one named, else `known.yaml` beside
    fupan.yaml."""
    named = flag or config.run.known
    if named is not None:
        return _local(named, "--known")
    return Path(config_path or CONFIG_FILE).with_name(KNOWN_FILE)


def _known(flag: str | None, config: ConfigFile, config_path: str | None) -> Path | None:
    """The file of known problems, if there is one. Raises UsageError where it is named and none."""
    file = known_file(flag, config, config_path).absolute()
    if not file.exists() and (flag or config.run.known):
        raise UsageError(f"no file of known problems at {file}; `fupan known add` makes it")
    load_known(file)
    return file if file.exists() else None


def _local(path: str, flag: str) -> Path:
    if "://" in path:
        raise UsageError(f"{flag} {without_secrets(path)}: name a local path")
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError as error:
        raise UsageError(f"{flag} {path}: there is no such user; name a path") from error


def _money(amount: float | None) -> Decimal | None:
    """The amount as it was written, to the last digit."""
    return None if amount is None else Decimal(repr(amount))


def _canary(flags: Flags, config: ConfigFile) -> float | None:
    """The share of records asked both ways first. Raises UsageError in single mode, unless that
    was typed and the canary was not: then none is sent."""
    typed, mode = flags.canary is not None, flags.mode or config.run.mode
    percent = flags.canary if typed else config.run.canary
    if percent is None or (flags.mode == "single" and not typed):
        return None
    if mode == "single":
        named, way = ("--canary", "--mode packed") if typed else ("run.canary", "run.mode: packed")
        raise UsageError(f"{named} tries packed mode against single mode; it needs {way}")
    return percent / 100


def _kind(text: str) -> tuple[str, Kind]:
    pattern, _, kind = text.rpartition("=")
    for known in KINDS:
        if kind == known and pattern:
            return pattern, known
    raise UsageError(f"--kind {text!r}: use GLOB=KIND with KIND one of {', '.join(KINDS)}")


def _dated(path: str, day: date) -> str:
    return path.replace("{date}", day.isoformat())
