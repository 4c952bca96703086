"""What a run leaves of itself beside its results: ledger.json, run.json, timing.json.

Invariant: everything that was asked of a model in this command is counted, once: the records, the
names, the instructions; a canary's calls are among those of the records.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from job.answers.care import close_account
from job.compress.calls import InstructionCalls
from job.compress.told import compression_warnings, told
from job.config import Settings
from job.ending import closing_words, why_stopped
from job.ledger import count_vias, make_ledger, read_manifests, sum_counts
from job.naming.calls import NamingCalls
from job.planning import RunPlan
from job.progress import View
from job.records import SliceCounts
from job.run_folder import RunFolder
from job.run_json import run_json
from job.spend.spending import account_warnings, money_of
from job.timing import Stations
from job.trial.canary import Canary, NoVerdict
from job.write import write_json
from serve.ask.ask import CallCounts
from serve.ask.spend_host import Purse, cap_words


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asked in this command, each when it is done: `view`, what the board showed of the
    records, then the names, the instructions and the canary, None where nobody asked for them.
    `purse`: what could be spent."""

    purse: Purse
    view: View
    naming: NamingCalls | None
    shortening: InstructionCalls | None
    canary: Canary | NoVerdict | None

    @property
    def calls(self) -> CallCounts:
        """All calls."""
        calls = self.view.calls
        for more in (self.naming, self.shortening):
            calls += more.counts if more else CallCounts()
        return calls

    @property
    def by_records(self) -> View | None:
        """What the records took of calls; None where that is not known: a run that has sent a
        canary recalls what it has just paid for."""
        canary = self.canary
        sent = canary.busy is not None if isinstance(canary, Canary) else canary is not None
        return None if sent else self.view

    def timing(self, stations: Stations) -> dict[str, Any]:
        """timing.json."""
        view, canary, shortening = self.view, self.canary, self.shortening
        more = {"asking": asdict(view.asking), "limiter": view.limiter, **view.facts}
        seconds = view.asking.busy
        if isinstance(canary, Canary):
            more["canary"] = canary.facts()
            seconds += canary.busy or 0.0
        if shortening is not None:
            seconds += shortening.busy.seconds
        return stations.timing(seconds, self.naming.busy.seconds if self.naming else 0.0, **more)


@dataclass(frozen=True, slots=True)
class Account:
    """What was written: `ledger`, `warnings` of run.json; `stopped`: see `why_stopped`."""

    ledger: dict[str, Any]
    stopped: str | None
    warnings: list[str]


def write_account(
    settings: Settings,
    plan: RunPlan,
    folder: RunFolder,
    asked: Asked,
    started: datetime,
    began: float,
) -> Account:
    """Recount what was written, and write ledger.json and run.json. `started`: the asking; `began`:
    the command, seconds since the epoch. Raises LedgerError."""
    cap = cap_words(asked.purse)
    money = money_of(settings, plan, asked.purse)
    vias = count_vias(folder.result_files())
    ledger = make_ledger(_sources(plan, folder), vias, asked.calls, money)
    stopped = why_stopped(asked.view, ledger, cap)
    ledger["spend"]["capped"] = stopped == cap
    write_json(folder.root / "ledger.json", ledger)
    canary = asked.canary
    run = run_json(settings, plan, started, asked.view.json_mode, stopped)
    if isinstance(canary, Canary):
        run |= {"mode": canary.mode, "canary": canary.facts()}
    run |= told(settings, plan, asked.shortening, asked.view.asking.packs)
    run["warnings"] = [
        *compression_warnings(run),
        *(canary.warnings() if canary else ()),
        *closing_words(settings, plan, ledger),
        *close_account(settings, asked.by_records, began),
        *account_warnings(settings, folder, asked.purse),
    ]
    write_json(folder.root / "run.json", run)
    return Account(ledger, stopped, run["warnings"])


def _sources(plan: RunPlan, folder: RunFolder) -> list[tuple[dict[str, Any], SliceCounts]]:
    """How each file was understood and what it held, recounted from the manifests."""
    held = read_manifests(folder.manifests)
    return [
        (facts, sum_counts(facts["source"], held.get(facts["source"], []))) for facts in plan.facts
    ]
