"""What a run would do: everything is read, cleaned and folded, and nothing is asked.

Invariant: no call is made and nothing is written outside a temporary folder of this machine, where
the work is done whatever RAY_ADDRESS says (other nodes would count into folders of theirs); what is
counted here is what the run will count, as long as the inputs and the answers stay what they are.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace

from rich.console import Console

from job.after import closing_warnings
from job.analyse.learned import around_name, estimates_name
from job.analyse.learning import Learning
from job.analyse.requests import instruction_tokens
from job.analyse.stored import AskSettings, record_key
from job.answers.care import damage_warnings
from job.asking import ask_settings
from job.cluster import cluster
from job.commands.preview_answers import AnswerTokens
from job.commands.preview_asking import Asking
from job.commands.preview_before import taken_over
from job.commands.preview_bound import bound_by
from job.commands.preview_canary import CanaryCalls, canary_calls
from job.commands.preview_found import Preview, count_files
from job.commands.preview_naming import naming_calls
from job.commands.preview_numbers import Range, Taken, around_of, costs, foresee
from job.commands.preview_packs import PlannedPacks
from job.compress.planned import plan_instructions
from job.config import Settings
from job.estimates.around import Around, decode_around
from job.estimates.kept import Earlier, decode_kept, earlier_of
from job.fold.folding import start_shards
from job.intake import Intake
from job.pack.held import BLOCK_RECORDS, blocks_at_once
from job.pack.packing import Fit
from job.pipeline import read_everything
from job.planning import RunPlan, has_answers, open_answers, plan_run
from job.progress import start_board
from job.records import Record, table_to_records
from job.run_folder import RunFolder
from job.sampling import sample_bound
from job.spend.prices import cap_warnings, known_prices, origin_words
from job.storage.place import Place
from job.trial.draw import draw
from serve.ask.answers_at import OpenAnswers
from serve.ask.settings import Provider


def preview(settings: Settings, console: Console, quiet: bool) -> Preview:
    """Work the plan out. Raises UsageError or InputError as `run` does."""
    began, since = time.monotonic(), time.time()
    plan = plan_run(settings, keep=False)
    found = Preview(language=plan.language, model=settings.model, ignored=plan.ignored)
    if not quiet:
        console.print(f"reading {len(plan.files)} files", style="dim")
    with tempfile.TemporaryDirectory(prefix="fupan-plan-") as temporary, cluster(own=True):
        folder = RunFolder(Place.of(temporary))
        folder.begin({}, overwrite=False)
        bound = None
        if settings.sample is not None:
            bound = sample_bound(plan.slices, plan.cleaning, settings.sample)
        shards = start_shards(len(plan.slices))
        intake = Intake(plan.slices, plan.cleaning, folder, shards, start_board(), bound)
        if settings.provider is None or plan.fit is None:
            found.to_ask = sum(len(block) for block in _blocks(intake))
            found.bounded = "no calls: the built-in analyst"
        else:
            asking = _Asked(settings, plan, settings.provider, plan.fit, found)
            asking.foresee(_blocks(intake), began, bound)
        count_files(plan, folder, found)
    window = settings.since, settings.until
    found.warnings = [
        *plan.warnings,
        *closing_warnings(asdict(found), window, {}),
        *(damage_warnings(settings, since) if settings.provider else ()),
        *cap_warnings(settings.max_spend, found.cost),
    ]
    return found


def _blocks(intake: Intake) -> Iterator[list[Record]]:
    dataset = read_everything(intake)
    if dataset is not None:
        for block in dataset.iter_batches(batch_size=None, batch_format="pyarrow"):
            yield table_to_records(block)


@dataclass(slots=True)
class _Asked:
    """What will be asked, and what that takes."""

    settings: Settings
    plan: RunPlan
    provider: Provider
    fit: Fit
    found: Preview

    def foresee(self, blocks: Iterator[list[Record]], began: float, sampled: str | None) -> None:
        """Form the packs of the run and tell what they take. `began`: when this plan was begun;
        `sampled`: the greatest id that a `--sample` keeps."""
        over, found = taken_over(self.settings, self.plan), self.found
        ask = ask_settings(self.settings, self.plan, over.since)
        limits = self.provider.limits.to_limits()
        with ExitStack() as stack:
            store: OpenAnswers | None = None
            if has_answers(self.settings):
                store = open_answers(self.settings)
                stack.enter_context(store)
            known = store if over.recalls else None
            told = plan_instructions(
                *(self.settings, self.provider, known, self.plan.masker), ask.since
            )
            if told is not None:
                ask, found.instructions = replace(ask, own=told.text), told.words
                self.fit.instructions = instruction_tokens(ask.language, ask.own)
            kept = over.canary
            if kept is not None:
                ask, self.fit.mode = replace(ask, mode=kept.mode), kept.mode
            earlier, around = _learned(store, self.provider, ask)
            answers = AnswerTokens(ask.language, earlier.answers)
            canary = CanaryCalls()
            if self.settings.canary is not None and kept is None:
                canary = canary_calls(
                    self._drawn(self.settings.canary, sampled),
                    *(ask, self.fit, self.provider, self.settings.pack_tokens),
                    lambda way: _learned(store, self.provider, way)[0],
                    answers,
                )
            learning = Learning.about(self.provider, self.fit, self.settings.pack_tokens)
            learning.begin_with(earlier)
            recalled = None if told and told.pending else known
            to_ask = self._to_ask(blocks, ask, recalled, canary.digests)
            held = blocks_at_once(self.provider, self.settings.pack_tokens) * BLOCK_RECORDS
            packs = PlannedPacks(to_ask, ask, self.fit, answers, learning.size, held=held)
            sent = [*canary.packed, *Asking(limits).run(packs)]
        naming = naming_calls(answers.issues, ask.language, around.naming, ask.best_model)
        took = around_of(around, sum(answers.records.values()), time.monotonic() - began)
        taken = foresee(
            *(sent, naming, limits, answers, earlier, took),
            alone=canary.alone,
            models=ask.models,
            handed_on=around.handed_on,
        )
        found.packs, found.naming = dict(canary.packs + packs.packs), len(naming)
        found.canary = len(canary.alone)
        found.pack_tokens = self.fit.wire["fast"]
        found.first_request = canary.first or packs.first
        found.earlier_runs = earlier.runs
        found.bounded = bound_by(taken, limits) if sent else ""
        self._tell(taken)

    def _drawn(self, share: float, sampled: str | None) -> Sequence[Record]:
        return draw(self.plan.slices, self.plan.cleaning, share, sampled).records

    def _to_ask(
        self,
        blocks: Iterator[list[Record]],
        ask: AskSettings,
        store: OpenAnswers | None,
        tried: Set[str],
    ) -> Iterator[Record]:
        """The records whose answers are not in the store, but for those that the canary has asked
        then (`tried`: their digests)."""
        for block in blocks:
            keys = [record_key(record, ask) for record in block]
            known = store.get_many(keys, ask.since) if store else {}
            for record, key in zip(block, keys, strict=True):
                if key in known:
                    self.found.recalled += 1
                else:
                    self.found.to_ask += 1
                    if record.digest not in tried:
                        yield record

    def _tell(self, taken: Taken) -> None:
        found = self.found
        found.calls = taken.calls
        found.tokens_in, found.tokens_out = (
            round(taken.tokens_in.about),
            round(taken.tokens_out.about),
        )
        found.asking_minutes, found.minutes = taken.asking.about / 60, taken.whole.about / 60
        found.ranges = {
            "tokens_in": _ends(taken.tokens_in),
            "tokens_out": _ends(taken.tokens_out),
            "asking_minutes": [round(end / 60, 3) for end in taken.asking[1:]],
            "minutes": [round(end / 60, 3) for end in taken.whole[1:]],
        }
        if known := known_prices(self.provider, tuple(taken.by_model)):
            prices = {model: each.prices for model, each in known.items()}
            found.prices = origin_words(known)
            about, *between = costs(taken, prices)
            found.cost, found.currency = round(about, 6), next(iter(prices.values())).currency
            found.ranges["cost"] = [round(end, 6) for end in between]


def _ends(tokens: Range) -> list[float]:
    return [round(tokens.low), round(tokens.high)]


def _learned(
    store: OpenAnswers | None, provider: Provider, ask: AskSettings
) -> tuple[Earlier, Around]:
    """What earlier runs have learned."""
    if store is None:
        return Earlier(), Around()
    name = estimates_name(provider, ask)
    kept = decode_kept(store.learned(name))
    return earlier_of(kept), decode_around(store.learned(around_name(provider, ask)))
