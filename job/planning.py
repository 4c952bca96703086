"""Settings -> the plan of a run: files as understood, how each is cleaned, in which language.

Invariant: the plan depends on the inputs and the settings alone, so the same command makes the
same plan again; nothing here is written and nothing is asked.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

from job.clean import Cleaner, CleanSettings
from job.config import Settings
from job.errors import UsageError
from job.instructions import Language
from job.mask import DEFAULT, Masker, load_key
from job.read import FilePlan, Plan, Slice, plan_inputs
from job.records import Kind, Record, SliceCounts

KEY_FILE = "mask.key"
"""Beside the answers: an alias must be the same in every run, or nothing would be recalled."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run will do. `cleaning`: by source. `facts` say how each file was understood,
    `fingerprints` tell whether a rerun has the same inputs."""

    files: tuple[FilePlan, ...]
    slices: tuple[Slice, ...]
    cleaning: dict[str, CleanSettings]
    language: Language
    ignored: int

    @property
    def facts(self) -> list[dict[str, Any]]:
        """For the ledger and the report."""
        return [
            {
                "source": file.source,
                "format": file.format.name,
                "encoding": file.encoding.codec,
                "compression": None if file.compression == "none" else file.compression,
            }
            for file in self.files
        ]

    @property
    def fingerprints(self) -> list[dict[str, Any]]:
        """For `run.json`."""
        return [
            {
                "source": file.source,
                "path": file.location.path,
                "size": file.size,
                "compression": None if file.compression == "none" else file.compression,
                "fingerprint": file.fingerprint,
            }
            for file in self.files
        ]


def plan_run(settings: Settings) -> RunPlan:
    """Look at every input. Raises InputError for one that holds no file."""
    plan = plan_inputs(
        [spec.path for spec in settings.inputs], reference=settings.reference, zone=settings.zone
    )
    masker = make_masker(settings)
    cleaning = {file.source: _cleaning(settings, file, masker) for file in plan.files}
    language = settings.language
    return RunPlan(
        plan.files,
        plan.slices,
        cleaning,
        _most_spoken(plan, cleaning) if language == "auto" else language,
        plan.ignored,
    )


def make_masker(settings: Settings) -> Masker:
    """The masker of a run; its key is made when it is first needed."""
    if not settings.mask:
        return Masker(b"", enabled=False)
    privacy = settings.privacy
    kinds = DEFAULT
    if privacy.mask is not None or privacy.alias is not None:
        kinds = (*(privacy.mask or ()), *(privacy.alias or ()))
    try:
        key = load_key(settings.answers.parent / KEY_FILE)
        return Masker(key, kinds=kinds, own=privacy.own)
    except ValueError as error:
        raise UsageError(f"privacy: {error}") from error
    except OSError as error:
        raise UsageError(
            f"cannot keep the key of the aliases beside {settings.answers}: {error.strerror}; "
            "name another place with --answers"
        ) from error


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


def _kind_of(settings: Settings, source: str) -> Kind | None:
    name = source.rsplit("/", 1)[-1]
    for pattern, kind in settings.kinds:
        if fnmatch(source, pattern) or fnmatch(name, pattern):
            return kind
    return None


def _most_spoken(plan: Plan, cleaning: dict[str, CleanSettings]) -> Language:
    """The language of most records, judged by the first records of each file and its size."""
    votes: Counter[str] = Counter()
    for file in plan.files:
        cleaner = Cleaner(cleaning[file.source], SliceCounts(file.source, 0))
        langs = Counter(
            cleaned.lang for raw in file.sample if isinstance(cleaned := cleaner.clean(raw), Record)
        )
        total = sum(langs.values())
        for lang, count in langs.items():
            votes[lang] += round(1000 * count / total * max(file.size, 1))
    return "zh" if votes["zh"] > votes["en"] else "en"
