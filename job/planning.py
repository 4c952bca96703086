"""Settings -> the plan of a run: files as understood, how each is cleaned, in which language.

Invariant: the plan depends on the inputs and the settings alone, so the same command makes the
same plan again; nothing here is written and nothing is asked.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
from typing import Any

from job.analyse.requests import SCHEMA_TOKENS, instruction_tokens
from job.answers.beside import KEY_FILE, files_of
from job.answers.words import answers_error, redis_error
from job.clean.cleaner import CleanSettings
from job.commands.first_look import FirstLook, first_look, warnings_of
from job.config import Settings
from job.errors import UsageError
from job.instructions import Language
from job.mask.masking import DEFAULT, Masker, load_key
from job.mask.source_names import with_shown_names
from job.own_instructions import unheard_instructions
from job.pack.packing import Fit
from job.printable import encodable
from job.read import FilePlan, Slice, plan_inputs
from job.read.chats import ChatNames
from job.records import KINDS, Kind
from job.storage.place import Place
from serve.ask import tokens
from serve.ask.answers_at import OpenAnswers
from serve.ask.answers_file import StoreError
from serve.ask.answers_redis import AnswersInRedis, RedisAnswers
from serve.ask.answers_repair import LastingAnswers
from serve.ask.settings import Provider

SMALLEST_PART = 100
"""Tokens of a record that fit one request: with less, a record is cut into crumbs."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run will do. `cleaning`: by source. `facts` say how each file was understood,
    `fingerprints` tell whether a rerun has the same inputs. `ignored`: entries below the inputs
    that are not read (hidden, no files, what runs have written). `fit`: what one request holds;
    None for the built-in analyst. `masker`: what hides private values wherever they stand.
    `looks`: at the first records of each file; `warnings`: what a user should know before it."""

    files: tuple[FilePlan, ...]
    slices: tuple[Slice, ...]
    cleaning: dict[str, CleanSettings]
    language: Language
    ignored: int
    fit: Fit | None
    masker: Masker
    looks: tuple[FirstLook, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def facts(self) -> list[dict[str, Any]]:
        """For the ledger and the report."""
        return [
            {
                "source": file.source,
                "format": file.format.shown,
                "encoding": file.encoding.codec,
                "compression": None if file.compression == "none" else file.compression,
            }
            for file in self.files
        ]

    @property
    def fingerprints(self) -> list[dict[str, Any]]:
        """For `run.json`: `places` with what is private in them masked."""
        return [{**place, "path": self.masker.mask(place["path"])[0]} for place in self.places]

    @property
    def places(self) -> list[dict[str, Any]]:
        """Where each file is, and what tells whether it is still the same."""
        return [
            {
                "source": file.source,
                "path": encodable(file.location.uri),
                "size": file.size,
                "compression": None if file.compression == "none" else file.compression,
                "fingerprint": file.fingerprint,
            }
            for file in self.files
        ]


def plan_run(settings: Settings, keep: bool) -> RunPlan:
    """Look at every input. `keep`: make the key of the aliases where there is none yet, and keep
    it; otherwise nothing is written.

    Raises InputError for an input that holds no file, UsageError where the settings leave no room
    for a record.
    """
    plan = plan_inputs(
        [spec.path for spec in settings.inputs],
        reference=settings.reference,
        zone=settings.zone,
        chats=partial(_chats, settings),
        written=_written(settings),
    )
    masker = _make_masker(settings, keep)
    cleanings = [_cleaning(settings, file, masker) for file in plan.files]
    plan = with_shown_names(plan, masker)
    cleaning = {file.source: each for file, each in zip(plan.files, cleanings, strict=True)}
    looks = tuple(first_look(file, cleaning[file.source]) for file in plan.files)
    language = settings.language
    if language == "auto":
        language = _most_spoken(looks)
    fit = _make_fit(settings, settings.provider, language) if settings.provider else None
    specs = settings.inputs
    warnings = warnings_of(looks, [spec.map for spec in specs], [spec.path for spec in specs])
    unheard = unheard_instructions(settings.own_instructions, settings.provider is not None)
    return RunPlan(
        plan.files,
        plan.slices,
        cleaning,
        language,
        plan.ignored,
        fit,
        masker,
        looks,
        tuple(masker.mask(warning)[0] for warning in (*unheard, *warnings)),
    )


def has_answers(settings: Settings) -> bool:
    """Whether there is a store of answers to look into: a file that exists, or a Redis, which the
    built-in analyst does not need."""
    if settings.redis is not None:
        return settings.provider is not None
    return settings.answers.exists()


def open_answers(settings: Settings) -> OpenAnswers:
    """The store of answers, a new one if the old one is damaged. Raises UsageError where
    `--answers` names none."""
    if settings.redis is not None:
        return open_redis(settings.redis)
    path = settings.answers
    if path.is_dir():
        raise UsageError(f"--answers {path} is a folder; name a file")
    try:
        return LastingAnswers(path)
    except StoreError as error:
        raise answers_error(path, error) from error
    except OSError as error:
        raise UsageError(f"cannot open --answers {path}: {error.strerror}") from error


def open_redis(at: AnswersInRedis) -> RedisAnswers:
    """The store of answers in a Redis. Raises UsageError where none answers, or it holds none."""
    store = RedisAnswers(at)
    try:
        store.check()
    except StoreError as error:
        raise redis_error(at, error) from error
    return store


def _written(settings: Settings) -> list[Place]:
    """Files and folders that the run itself writes."""
    return [settings.out, *map(Place.of, files_of(settings.answers))]


def _make_masker(settings: Settings, keep: bool) -> Masker:
    if not settings.mask:
        return Masker(b"", enabled=False)
    privacy = settings.privacy
    kinds = (*(DEFAULT if privacy.mask is None else privacy.mask), *privacy.alias)
    path = settings.answers.parent / KEY_FILE
    try:
        key = load_key(path) if keep or path.exists() else secrets.token_bytes(32)
        return Masker(key, kinds=kinds, own=privacy.own)
    except ValueError as error:
        raise UsageError(f"privacy: {error}") from error
    except OSError as error:
        raise UsageError(
            f"cannot keep the key of the aliases beside {settings.answers}: {error.strerror}; "
            "name another place with --answers"
        ) from error


def _make_fit(settings: Settings, provider: Provider, language: Language) -> Fit:
    """What one request holds. Raises UsageError where next to nothing of a record would."""
    fit = Fit(
        context=provider.context,
        max_output=provider.max_output,
        instructions=instruction_tokens(language, settings.own_instructions),
        mode=settings.mode,
    )
    if settings.pack_tokens is not None:
        fit = fit.with_pack_tokens(settings.pack_tokens)
    # The provider may turn out to have no mode for the schema: then it takes part of the context.
    tight = replace(fit, overhead=SCHEMA_TOKENS)
    room = min(tight.max_part(kind) for kind in KINDS)
    if room < SMALLEST_PART:
        raise UsageError(
            f"--context {provider.context} leaves {max(room, 0)} tokens for a record beside the "
            f"instructions and its answer; {provider.context + SMALLEST_PART - room} are needed"
            + _own_share(settings.own_instructions)
        )
    return fit


def _own_share(own: str) -> str:
    return f", or shorter --instructions: they take {tokens.count(own):,}" if own else ""


def _cleaning(settings: Settings, file: FilePlan, masker: Masker) -> CleanSettings:
    spec = settings.inputs[file.input]
    return CleanSettings(
        reference=settings.reference,
        zone=settings.zone,
        masker=masker,
        kind=_kind_of(settings, file.source) or spec.kind,
        map=spec.map,
        since=settings.since,
        until=settings.until,
        skip=spec.skip,
    )


def _chats(settings: Settings, name: str, index: int) -> ChatNames:
    """What the user says of the chats in a file."""
    spec = settings.inputs[index]
    kind = _kind_of(settings, name) or spec.kind
    wanted = None if kind is None else kind == "conversation"
    return ChatNames(spec.map.get("session"), spec.map.get("text"), wanted)


def _kind_of(settings: Settings, source: str) -> Kind | None:
    name = source.rsplit("/", 1)[-1]
    for pattern, kind in settings.kinds:
        if fnmatch(source, pattern) or fnmatch(name, pattern):
            return kind
    return None


def _most_spoken(looks: Iterable[FirstLook]) -> Language:
    """The language of most records, judged by the first records of each file and its size."""
    votes: Counter[str] = Counter()
    for look in looks:
        total = sum(look.langs.values())
        for lang, count in look.langs.items():
            votes[lang] += round(1000 * count / total * max(look.file.size, 1))
    return "zh" if votes["zh"] > votes["en"] else "en"
