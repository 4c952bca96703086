"""`fupan compare`: the same part of the records asked in two ways, and how far the answers agree.

Invariant: nothing is recalled and nothing is stored; what is asked is the same for both ways.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from job.analyse.dispatch import Dispatcher
from job.analyse.learned import estimates_name
from job.analyse.stored import AskSettings
from job.asking import ask_settings
from job.cluster import cluster
from job.compare.comparison import Comparison
from job.compare.table import table
from job.compress.planned import plan_instructions
from job.config import Settings
from job.errors import JobError, StoppedEarly, TooManyFailed, UsageError
from job.estimates.kept import Earlier, decode_kept, earlier_of
from job.local_model import start_local
from job.own_instructions import own_hash, read_instructions
from job.planning import RunPlan, has_answers, open_answers, plan_run
from job.printable import printable
from job.provider_choice import AUTO
from job.report.trial import reason_in_words
from job.report.words import Words
from job.run_folder import COMPARISON
from job.sampling import sample_bound
from job.spend.prices import check_cap, known_prices
from job.storage.store import store_words
from job.trial.draw import Drawn, draw
from job.trial.trial import Say, Sides, Trial, compare_sides
from job.trial.ways import Watch, Way
from job.write import write_json
from serve.ask.errors import Misconfigured
from serve.ask.limiter_actor import RayPermits
from serve.ask.settings import Provider, api_key, key_variable
from serve.ask.spend_host import Purse, SpendHost
from serve.ask.spend_journal import FILE as SPEND_FILE

LINE_SECONDS = 5.0
"""Between two lines of progress."""

Question = Literal["single-packed", "model", "instructions"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is compared: the modes, or with which model, or with the instructions of which file.
    `share`: of the distinct records, 0 to 1."""

    model: str | None
    instructions: str | None
    share: float

    @property
    def question(self) -> Question:
        """What differs between the two ways."""
        if self.model is not None:
            return "model"
        return "single-packed" if self.instructions is None else "instructions"


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison that was carried out. `warnings`: what a user should know beside it."""

    found: Comparison
    drawn: Drawn
    warnings: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """3 where the second way should not be used as it is, else 0."""
        return TooManyFailed.exit_code if self.found.verdict.bad else 0

    @property
    def sentence(self) -> str:
        """Why the verdict is what it is."""
        return reason_in_words(self.found.verdict.as_json(), Words("en"))

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints and compare.json holds."""
        said = self.found.verdict.as_json()
        words: dict[Literal["en", "zh"], str] = {
            "en": reason_in_words(said, Words("en")),
            "zh": reason_in_words(said, Words("zh")),
        }
        return {"exit_code": self.exit_code, "in_words": words, **self.found.as_json()}

    def lines(self) -> list[str]:
        """What a person reads."""
        records, distinct = len(self.drawn.records), self.drawn.distinct
        return [
            f"{records:,} of {distinct:,} distinct records",
            *table(self.found, self.sentence),
        ]


def compare(settings: Settings, asked: Asked, console: Console, quiet: bool) -> Compared:
    """Carry the comparison out. Raises UsageError where it cannot begin, StoppedEarly where it
    ended before both ways were asked."""
    provider = _provider(settings)
    plan = plan_run(settings, keep=True)
    told, warnings = instructions(settings, provider, plan)
    trial = Trial(
        *_ways(settings, provider, replace(ask_settings(settings, plan), own=told), asked)
    )
    purse = _purse(settings, provider, trial)

    def say(words: str) -> None:
        if not quiet:
            console.print(printable(words), style="dim", highlight=False)

    with cluster():
        _model = start_local(trial.first.provider)  # it ends with its handle
        say(f"reading {len(plan.files)} files")
        bound = None
        if settings.sample is not None:
            bound = sample_bound(plan.slices, plan.cleaning, settings.sample)
        drawn = draw(plan.slices, plan.cleaning, asked.share, bound)
        if not drawn.records:
            raise UsageError("the inputs hold no record to ask about")

        try:
            watch = None if quiet else _progress(console, len(drawn.records))
            first, second, again = asyncio.run(_ask(trial, drawn, purse, watch, say))
        except (StoppedEarly, KeyboardInterrupt) as error:
            raise StoppedEarly(
                f"stopped early: {str(error) or 'interrupted'}. Nothing was compared, and a "
                "comparison keeps no answers: the same command begins anew"
            ) from error
        say("comparing")
        about = _about(settings, plan, asked, drawn)
        return Compared(compare_sides(first, second, again, about), drawn, warnings)


async def _ask(trial: Trial, drawn: Drawn, purse: Purse, watch: Watch | None, say: Say) -> Sides:
    """Ask in both ways, under the limits that everybody shares and the cap of this command."""
    provider = trial.first.provider
    permits = RayPermits(provider.base_url, key_variable(provider), provider.limits.to_limits())
    with tempfile.TemporaryDirectory(prefix="fupan-compare-") as folder:
        spend = SpendHost(Path(folder) / SPEND_FILE, purse)
        try:
            return await trial.ask(drawn.records, permits, spend, watch, say, drawn.distinct)
        finally:
            spend.close()


def check_out(settings: Settings) -> None:
    """See that `--out` can be written, before anything is paid for. Raises UsageError."""
    tried = settings.out / f".{COMPARISON}.{uuid.uuid4().hex[:8]}.part"
    try:
        write_json(tried, {})
        tried.unlink()
    except OSError as error:
        why = store_words(error) or error.strerror or str(error)
        raise UsageError(f"cannot write to --out {settings.out}: {why}") from error


def write_comparison(compared: Compared, settings: Settings) -> None:
    """Write compare.json to `--out`. Raises JobError where it cannot be written."""
    try:
        write_json(settings.out / COMPARISON, compared.as_json())
    except OSError as error:
        raise JobError(
            f"cannot write {COMPARISON} to --out {settings.out}: {error.strerror or error}"
        ) from error


def _provider(settings: Settings) -> Provider:
    if settings.provider is None:
        raise UsageError(
            "compare asks a model: name one with --base-url and --model, or in fupan.yaml"
        )
    try:
        api_key(settings.provider)
    except Misconfigured as error:
        raise UsageError(error.message) from error
    return settings.provider


def instructions(
    settings: Settings, provider: Provider, plan: RunPlan
) -> tuple[str, tuple[str, ...]]:
    """The user's own instructions as a run would tell them, and a warning where it would have them
    made shorter first: a comparison only uses what an earlier run has kept."""
    if has_answers(settings):
        with open_answers(settings) as answers:
            planned = plan_instructions(settings, provider, answers, plan.masker)
    else:
        planned = plan_instructions(settings, provider, None, plan.masker)
    if planned is None or not planned.pending:
        return planned.text if planned else "", ()
    return planned.text, (
        "the instructions are compared as they are written: no run has made them shorter yet "
        "(compress_instructions)",
    )


def _ways(
    settings: Settings, provider: Provider, ask: AskSettings, asked: Asked
) -> tuple[Way, Way]:
    """The two ways. Raises UsageError where they are one."""

    def way(name: str, ask: AskSettings) -> Way:
        return Way(name, provider, ask, settings.pack_tokens, _earlier(settings, provider, ask))

    if asked.model is not None:
        if "," in asked.model or asked.model == AUTO:
            raise UsageError(
                f"--with-model {asked.model}: name one model; several that share the work go with "
                "--model"
            )
        if asked.model == settings.model:
            raise UsageError(f"--with-model {asked.model}: that is the model itself")
        other = replace(ask, model=asked.model, tiers=(asked.model,))
        return way(settings.model, ask), way(asked.model, other)
    if asked.instructions is not None:
        own = read_instructions(asked.instructions, "--with-instructions")
        if own == settings.own_instructions:
            raise UsageError(f"--with-instructions {asked.instructions}: those are used already")
        name = "own instructions" if ask.own else "no own instructions"
        return way(name, ask), way("other instructions", replace(ask, own=own))
    return way("single", replace(ask, mode="single")), way("packed", replace(ask, mode="packed"))


def _earlier(settings: Settings, provider: Provider, ask: AskSettings) -> Earlier:
    """What runs have learned of asking so: packs are then as big as in the next one."""
    if not has_answers(settings):
        return Earlier()
    with open_answers(settings) as answers:
        return earlier_of(decode_kept(answers.learned(estimates_name(provider, ask))))


def _purse(settings: Settings, provider: Provider, trial: Trial) -> Purse:
    """What the comparison may spend. Raises UsageError where a cap cannot be kept."""
    models = tuple(dict.fromkeys((*trial.first.ask.tiers, *trial.second.ask.tiers)))
    cap = check_cap(settings.max_spend, provider, models)
    prices = {model: one.prices for model, one in known_prices(provider, models).items()}
    return Purse("compare", uuid.uuid4().hex, cap, prices)


def _about(settings: Settings, plan: RunPlan, asked: Asked, drawn: Drawn) -> Mapping[str, Any]:
    return {
        "version": version("fupan"),
        "question": asked.question,
        "provider": settings.provider_name,
        "model": settings.model,
        "language": plan.language,
        "own_instructions": own_hash(settings.own_instructions)
        if settings.own_instructions
        else None,
        "sample": {
            "records": len(drawn.records),
            "distinct": drawn.distinct,
            "share_wanted": asked.share,
        },
    }


def _progress(console: Console, records: int) -> Watch:
    """Says every few seconds how far the asking is."""
    shown = time.monotonic()

    async def watch(label: str, dispatcher: Dispatcher) -> None:
        nonlocal shown
        if time.monotonic() - shown < LINE_SECONDS:
            return
        shown = time.monotonic()
        progress, counts = dispatcher.progress, dispatcher.asker.counts
        done = progress.answered + progress.review + progress.failed
        console.print(
            f"{label}: {done:,} of {records:,} answered, {counts.requests:,} requests, "
            f"{counts.rate_limited:,} rate limited",
            style="dim",
            highlight=False,
        )

    return watch
