"""One run from settings to report: plan, stream, group, account, report.

Invariant: a run that began leaves a folder that says what it is (`run.json`), a balanced ledger
and a report, also when it was stopped; or an error, and a folder that the same command goes on in.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import ray
from rich.console import Console

from job.analyse.analyst import AnalyseSettings
from job.answers.care import check_answers, close_account
from job.asking import choose_analyst
from job.cluster import cluster
from job.compress.calls import instruction_calls
from job.compress.told import compression_warnings, told
from job.config import Settings
from job.ending import closing_words, exit_error, why_stopped
from job.errors import JobError, StoppedEarly, UsageError
from job.estimates.keep_around import keep_around
from job.finish import finish_results, write_outcomes
from job.fold.folding import start_shards
from job.fold.join import join_members
from job.history.baseline import check_baseline, earlier_themes, keep_baseline
from job.intake import Intake
from job.ledger import count_vias, make_ledger, read_manifests, sum_counts
from job.lines import LineFinder
from job.pipeline import ask_everything
from job.planning import RunPlan, plan_run
from job.printable import encodable
from job.progress import View, start_board
from job.ration.closing import keep_closing, naming_calls
from job.reach import check_reach
from job.records import SliceCounts
from job.report import write_report
from job.run_folder import RunFolder
from job.run_json import identity, run_json
from job.sampling import sample_bound
from job.show import Watcher
from job.spend.spending import account_warnings, check_journal, make_purse, money_of
from job.storage.hold import Check
from job.storage.place import Place
from job.themes.grouping import group_issues, name_groups
from job.themes.table import write_themes
from job.timing import Stations
from job.trial.canary import Canary, kept_canary, send_canary
from job.write import write_json
from serve.ask.ask import CallCounts
from serve.ask.errors import Misconfigured
from serve.ask.settings import api_key
from serve.ask.spend_host import cap_words

LOOK_SECONDS = 2.0
"""The progress waits so long for the board: four looks."""


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
            check_baseline(settings.baseline, folder.root)
            plan = plan_run(settings, keep=True)
            folder.begin(identity(settings, plan), settings.overwrite, settings.fresh)
            check_answers(settings)
            check_journal(settings)
        with stations.station("start_ray"):
            stack.enter_context(cluster())
            check_reach(folder, [file.location for file in plan.files], settings.provider)
        finished = _run(settings, plan, folder, stations, watcher, still_held)
        folder.finish()
    return finished


def _run(
    settings: Settings,
    plan: RunPlan,
    folder: RunFolder,
    stations: Stations,
    watcher: Watcher,
    still_held: Check,
) -> Finished:
    started = datetime.now(UTC)
    board = start_board()
    purse = make_purse(settings, folder)
    analyst = choose_analyst(
        settings, plan, board, folder.fresh_since() if settings.fresh else None, purse
    )
    shortening = instruction_calls(settings, analyst)
    if shortening is not None:
        with stations.station("compress"):
            analyst = shortening()
    bound = None
    if settings.sample is not None:
        with stations.station("sample"):
            bound = sample_bound(plan.slices, plan.cleaning, settings.sample)
    canary = _canary(settings, plan, folder, analyst, bound, purse.run, stations, watcher)
    if canary is not None and isinstance(analyst, AnalyseSettings):
        analyst = canary.applied(analyst)
    intake = Intake(plan.slices, plan.cleaning, folder, start_shards(), board, bound)
    with (
        stations.station("ask"),
        watcher.board(lambda: _view(board, LOOK_SECONDS), len(plan.slices)),
        _interrupts(board),
    ):
        asked = ask_everything(intake, analyst)
    view = _view(board)
    if view.stop_code == UsageError.exit_code:
        raise UsageError(str(view.stop))
    still_held()
    with stations.station("join"):
        unfinished = [*asked, *join_members(folder)]
    with stations.station("themes"):
        kept = settings.answers if settings.provider is not None else None
        earlier = earlier_themes(settings.baseline, folder.root)
        grouped = group_issues(unfinished, earlier, kept=kept)
    with stations.station("results"):
        tally = finish_results(folder, unfinished, grouped.index)
        write_outcomes(folder)
    with stations.station("names"):
        naming = naming_calls(analyst, view)
        groups, names = name_groups(grouped, tally, plan.language, naming)
        write_themes(folder.root / "themes.parquet", groups, names, grouped.space)
    with stations.station("account"):
        calls = view.calls + naming.counts if naming else view.calls
        calls += shortening.counts if shortening else CallCounts()
        ledger = make_ledger(
            _sources(plan, folder),
            count_vias(folder.result_files()),
            calls,
            money_of(settings, plan, purse),
        )
        stopped = why_stopped(view, ledger, cap_words(purse))
        ledger["spend"]["capped"] = stopped == cap_words(purse)
        write_json(folder.root / "ledger.json", ledger)
        run = run_json(settings, plan, started, view.json_mode, stopped)
        if canary is not None:
            run |= {"mode": canary.mode, "canary": canary.facts()}
        run |= told(settings, plan, shortening, view.asking.packs)
        run["warnings"] = [
            *compression_warnings(run),
            *(canary.warnings() if canary else ()),
            *closing_words(settings, plan, ledger),
            # A run that has sent a canary recalls what it has just paid for.
            *close_account(settings, None if canary and canary.busy else view, stations.began),
            *account_warnings(settings, folder, purse),
        ]
        write_json(folder.root / "run.json", run)
    asking = {"asking": asdict(view.asking), "limiter": view.limiter, **view.facts}
    calls_seconds = view.asking.busy
    if canary is not None:
        asking["canary"] = canary.facts()
        calls_seconds += canary.busy
    if shortening is not None:
        calls_seconds += shortening.busy.seconds
    named = naming.busy.seconds if naming else 0.0
    write_json(folder.root / "timing.json", stations.timing(calls_seconds, named, **asking))
    still_held()
    with stations.station("report"):
        if settings.baseline is None:
            keep_baseline(folder.root, None)
        report = write_report(folder.root, LineFinder(plan.places), settings.baseline)
    if isinstance(analyst, AnalyseSettings) and naming:
        keep_closing(analyst.answers, ledger["records"], view, naming)
        keep_around(analyst, view, ledger["records"], started, stations, naming)
    write_json(folder.root / "timing.json", stations.timing(calls_seconds, named, **asking))
    return Finished(
        report,
        view,
        folder.root / "report.html",
        exit_error(settings, ledger, stopped),
        run["warnings"],
    )


def _canary(
    settings: Settings,
    plan: RunPlan,
    folder: RunFolder,
    analyst: AnalyseSettings | str,
    sampled: str | None,
    run: str,
    stations: Stations,
    watcher: Watcher,
) -> Canary | None:
    """What a part of the records says about the mode, where the user wants to know: now, or in an
    earlier command of this run. None also where that was stopped. `run`: what all these commands
    share."""
    if settings.canary is None or not isinstance(analyst, AnalyseSettings):
        return None
    kept = kept_canary(folder)
    if kept is not None:
        return kept
    board = analyst.board
    with (
        stations.station("canary"),
        watcher.board(lambda: _view(board, LOOK_SECONDS), len(plan.slices)),
        _interrupts(board),
    ):
        return send_canary(settings.canary, plan, folder, analyst, sampled, run)


def _check_key(settings: Settings) -> None:
    if settings.provider is None:
        return
    try:
        api_key(settings.provider)
    except Misconfigured as error:
        raise UsageError(error.message) from error


def _view(board: Any, timeout: float | None = None) -> View:
    """What the board shows. Raises GetTimeoutError after `timeout` seconds."""
    view: View = ray.get(board.view.remote(), timeout=timeout)
    return view


@contextmanager
def _interrupts(board: Any) -> Iterator[None]:
    """Ctrl-C or SIGTERM once ends the asking and leaves a partial report, twice the command."""

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        board.stop.remote(f"interrupted by {signal.Signals(number).name}", StoppedEarly.exit_code)
        signal.signal(number, signal.default_int_handler)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, stop) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _sources(plan: RunPlan, folder: RunFolder) -> list[tuple[dict[str, Any], SliceCounts]]:
    """How each file was understood and what it held, recounted from the manifests."""
    held = read_manifests(folder.manifests)
    return [
        (facts, sum_counts(facts["source"], held.get(facts["source"], []))) for facts in plan.facts
    ]
