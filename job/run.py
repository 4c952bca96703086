"""One run from settings to report: plan, stream, group, account, report.

Invariant: a run that began leaves a folder that says what it is (`run.json`), a balanced ledger
and a report, also when it was stopped; or an error, and a folder that the same command goes on in.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from job.accounting import Account, Asked, write_account
from job.analyse.analyst import AnalyseSettings
from job.answers.care import check_answers
from job.asking import choose_analyst
from job.cluster import cluster
from job.compress.calls import InstructionCalls, instruction_calls
from job.config import Settings
from job.ending import exit_error
from job.errors import JobError, UsageError
from job.estimates.keep_around import keep_around
from job.finish import finish_results, write_outcomes
from job.fold.folding import start_shards
from job.fold.join import join_members
from job.history.baseline import EarlierRuns, earlier_runs, keep_baseline
from job.intake import Intake
from job.lines import LineFinder
from job.naming.calls import NamingCalls
from job.pipeline import ask_everything
from job.planning import RunPlan, plan_run
from job.printable import encodable
from job.progress import View, start_board
from job.ration.closing import keep_closing, naming_calls
from job.reach import check_reach
from job.report import write_report
from job.run_folder import RunFolder
from job.run_json import identity
from job.sampling import sample_bound
from job.show import Watcher
from job.spend.spending import check_journal, make_purse
from job.storage.hold import Check
from job.storage.place import Place
from job.themes.grouping import group_issues, name_groups
from job.themes.table import read_themes, write_themes
from job.timing import Stations
from job.trial.canary import Canary, NoVerdict, kept_canary, send_canary
from job.watched import look, watched
from job.write import write_json
from serve.ask.errors import Misconfigured
from serve.ask.settings import api_key


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that left its report. `error`: what its exit code comes from, None for 0.
    `warnings`: what a user should know of how the inputs were read."""

    report: dict[str, Any]
    view: View
    page: Place
    error: JobError | None
    warnings: list[str]

    def summary(self) -> dict[str, Any]:
        """What `--json` prints."""
        ledger = {k: v for k, v in self.report["ledger"].items() if k != "sources"}
        return {
            "exit_code": self.error.exit_code if self.error else 0,
            "stopped": self.report["run"]["stopped"],
            "headline": self.report["headline"],
            "actions": self.report["actions"],
            "warnings": self.warnings,
            "report": encodable(str(self.page)),
            "ledger": ledger,
            "cost": self.report["cost"],
        }


def run_job(settings: Settings, console: Console, quiet: bool) -> Finished:
    """Carry a run out. Raises UsageError where it cannot begin, JobError where it broke."""
    stations = Stations()
    watcher = Watcher(console, stations, quiet)
    _check_key(settings)
    folder = RunFolder(settings.out)
    with ExitStack() as stack:
        still_held = stack.enter_context(folder.locked())
        stack.enter_context(watcher.watching())
        with stations.station("plan"):
            earlier = earlier_runs(settings.baseline, folder.root)
            plan = plan_run(settings, keep=True)
            folder.begin(identity(settings, plan), settings.overwrite, settings.fresh)
            check_answers(settings)
            check_journal(settings)
        with stations.station("start_ray"):
            stack.enter_context(cluster())
            check_reach(folder, [file.location for file in plan.files], settings.provider)
        now = datetime.now(UTC)
        run = _Run(settings, plan, folder, earlier, stations, watcher, still_held, now)
        finished = run.carry_out()
        folder.finish()
    return finished


@dataclass(frozen=True, slots=True)
class _Run:
    """A run whose folder is held and whose cluster is there. `earlier`: what it is compared with;
    `started`: when the cluster was there."""

    settings: Settings
    plan: RunPlan
    folder: RunFolder
    earlier: EarlierRuns | None
    stations: Stations
    watcher: Watcher
    still_held: Check
    started: datetime

    def carry_out(self) -> Finished:
        """Ask, group, account, report."""
        settings, plan, folder, board = self.settings, self.plan, self.folder, start_board()
        purse = make_purse(settings, folder)
        since = folder.fresh_since() if settings.fresh else None
        analyst, shortening = self._told(choose_analyst(settings, plan, board, since, purse))
        bound = self._bound()
        canary = self._canary(analyst, bound, purse.run)
        if isinstance(canary, Canary) and isinstance(analyst, AnalyseSettings):
            analyst = canary.applied(analyst)
        written = self._ask(board, analyst, bound)
        view = look(board)
        if view.stop_code == UsageError.exit_code:
            raise UsageError(str(view.stop))
        self.still_held()
        naming = self._group(written, analyst, view)
        asked = Asked(purse, view, naming, shortening, canary)
        with self.stations.station("account"):
            began = self.stations.began
            account = write_account(settings, plan, folder, asked, self.started, began)
        self._write_timing(asked)
        self.still_held()
        report = self._report()
        self._remember(analyst, asked, account)
        self._write_timing(asked)
        error = exit_error(settings, account.ledger, account.stopped)
        return Finished(report, view, folder.root / "report.html", error, account.warnings)

    def _told(
        self, analyst: AnalyseSettings | str
    ) -> tuple[AnalyseSettings | str, InstructionCalls | None]:
        """`analyst` with the instructions that the model is told, and who made them shorter."""
        shortening = instruction_calls(self.settings, analyst)
        if shortening is None:
            return analyst, None
        with self.stations.station("compress"):
            return shortening(), shortening

    def _bound(self) -> str | None:
        """The greatest id that a `--sample` keeps."""
        if self.settings.sample is None:
            return None
        with self.stations.station("sample"):
            return sample_bound(self.plan.slices, self.plan.cleaning, self.settings.sample)

    def _canary(
        self, analyst: AnalyseSettings | str, sampled: str | None, run: str
    ) -> Canary | NoVerdict | None:
        """What a part of the records says about the mode, where the user wants to know: now, or in
        an earlier command of this run. `run`: what all these commands share."""
        share, plan = self.settings.canary, self.plan
        if share is None or not isinstance(analyst, AnalyseSettings):
            return None
        kept = kept_canary(self.folder)
        if kept is not None:
            return kept
        with (
            self.stations.station("canary"),
            watched(analyst.board, self.watcher, len(plan.slices)),
        ):
            return send_canary(share, plan, self.folder, analyst, sampled, run)

    def _ask(self, board: Any, analyst: AnalyseSettings | str, bound: str | None) -> list[Place]:
        """Read and ask everything; the files of results."""
        plan = self.plan
        shards = start_shards(len(plan.slices))
        intake = Intake(plan.slices, plan.cleaning, self.folder, shards, board, bound)
        with self.stations.station("ask"), watched(board, self.watcher, len(plan.slices)):
            return ask_everything(intake, analyst)

    def _group(
        self, written: list[Place], analyst: AnalyseSettings | str, view: View
    ) -> NamingCalls | None:
        """Join, group and name what was `written`, and write the results; who asked for names."""
        settings, folder, station = self.settings, self.folder, self.stations.station
        with station("join"):
            unfinished = [*written, *join_members(folder)]
        with station("themes"):
            kept = settings.store if settings.provider is not None else None
            if self.earlier is None:
                before = read_themes(folder.root / "themes.parquet")  # if it was made before
            else:
                before = self.earlier.themes()
            grouped = group_issues(unfinished, before, kept=kept)
        with station("results"):
            tally = finish_results(folder, unfinished, grouped.index)
            write_outcomes(folder)
        with station("names"):
            naming = naming_calls(analyst, view)
            groups, names = name_groups(grouped, tally, self.plan.language, naming)
            write_themes(folder.root / "themes.parquet", groups, names, grouped.space)
        return naming

    def _report(self) -> dict[str, Any]:
        root = self.folder.root
        with self.stations.station("report"):
            if self.earlier is None:
                keep_baseline(root, None)
            return write_report(root, LineFinder(self.plan.places), self.earlier)

    def _remember(self, analyst: AnalyseSettings | str, asked: Asked, account: Account) -> None:
        """Keep what this run took, for the deadlines and plans of later ones."""
        if isinstance(analyst, AnalyseSettings) and asked.naming:
            view, naming, records = asked.view, asked.naming, account.ledger["records"]
            keep_closing(analyst.answers, records, view, naming)
            keep_around(analyst, view, records, self.started, self.stations, naming)

    def _write_timing(self, asked: Asked) -> None:
        write_json(self.folder.root / "timing.json", asked.timing(self.stations))


def _check_key(settings: Settings) -> None:
    if settings.provider is None:
        return
    try:
        api_key(settings.provider)
    except Misconfigured as error:
        raise UsageError(error.message) from error
