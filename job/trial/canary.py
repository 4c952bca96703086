"""`run --canary`: a part of the records in packed and in single mode first, to choose the mode.

Invariant: what is paid for is used: the answers of the mode that the run goes on with are stored
before the verdict is, and recalled by the run. The verdict stays in the folder of the run, so that
the same command goes on in the same mode; a canary that was stopped, or could not ask about every
record, leaves no verdict, but every answer it was given, and the same command asks for the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import orjson
import ray

from job.analyse.analyst import AnalyseSettings
from job.analyse.dispatch import Dispatcher
from job.analyse.learned import estimates_name
from job.errors import StoppedEarly
from job.estimates.kept import decode_kept, earlier_of
from job.pack.packing import Mode
from job.planning import RunPlan
from job.report.trial import reason_in_words
from job.report.words import Words
from job.run_folder import RunFolder
from job.trial.draw import Drawn, draw
from job.trial.kept import Kept
from job.trial.trial import Sides, Trial, compare_sides
from job.trial.ways import Unfinished, Watch, Way
from job.write import write_json
from serve.ask.answers_actor import RayAnswers
from serve.ask.limiter_actor import RayPermits
from serve.ask.settings import key_variable
from serve.ask.spend_actor import RaySpend

FILE = "canary.json"


@dataclass(frozen=True, slots=True)
class Canary:
    """What a canary came to. `found`: the comparison, as canary.json holds it; `busy`: seconds of
    this command in which one of its calls was in flight or waited for its permit, None where an
    earlier command sent it."""

    found: Mapping[str, Any]
    busy: float | None = None

    @property
    def mode(self) -> Mode:
        """The mode that the run goes on in."""
        return "single" if self.found["verdict"] == "bad" else "packed"

    def facts(self) -> dict[str, Any]:
        """For run.json and timing.json: the verdict, what it comes from, the mode chosen."""
        names = (
            "verdict",
            "reason",
            "before",
            "after",
            "position",
            "longest_pack",
            "records",
        )
        calls = sum(
            self.found[side]["calls"]["requests"] for side in ("first", "second", "first_again")
        )
        return {
            **{name: self.found[name] for name in names},
            "mode": self.mode,
            "sample": self.found["sample"],
            "calls": calls,
        }

    def warnings(self) -> list[str]:
        """What to tell who started the run; nothing where all is well."""
        verdict = self.found["verdict"]
        if verdict == "good":
            return []
        reason = reason_in_words(self.found, Words("en"))
        way = "every record was asked by itself" if self.mode == "single" else "packs were kept"
        return [f"the canary is {verdict} ({reason}): {way}; see {FILE}"]

    def applied(self, analyst: AnalyseSettings) -> AnalyseSettings:
        """`analyst` in the mode chosen."""
        return replace(analyst, ask=replace(analyst.ask, mode=self.mode))


@dataclass(frozen=True, slots=True)
class NoVerdict:
    """A canary that this command sent and that came to none. `why`: what ended it; `stopped`: that
    ended the run as well, which otherwise goes on in the mode it was given."""

    why: str
    stopped: bool

    def warnings(self) -> list[str]:
        """What to tell who started the run, where the run does not tell it."""
        if self.stopped:
            return []
        return [f"the canary could not be finished ({self.why}): packs were kept, untried"]


def kept_canary(folder: RunFolder) -> Canary | None:
    """The verdict of an earlier command of this run; None where there is none, or the file is not
    what a canary writes."""
    try:
        canary = Canary(orjson.loads((folder.root / FILE).read_bytes()))
        reason_in_words(canary.facts(), Words("en"))
    except (FileNotFoundError, KeyError, TypeError, ValueError):
        return None
    return canary


def send_canary(
    share: float,
    plan: RunPlan,
    folder: RunFolder,
    analyst: AnalyseSettings,
    sampled: str | None,
    run: str,
) -> Canary | NoVerdict | None:
    """Ask about a `share` (0 to 1) of the distinct records in both modes; None where there are
    none. Where it was stopped, the board knows why. `sampled`: the greatest id that a `--sample`
    keeps; `run`: a name that all commands share that go on in the folder. Raises UsageError where
    URL, model or key are wrong."""
    drawn = draw(plan.slices, plan.cleaning, share, sampled)
    if not drawn.records:
        return None
    store = RayAnswers(analyst.answers)

    def keeping(name: str) -> Kept:
        return Kept(f"{run} {name}", store)

    trial = Trial(_way("single", analyst), _way("packed", analyst), keeping)
    try:
        first, second, again = asyncio.run(_ask(trial, drawn, analyst))
    except Unfinished as error:
        _store(trial, analyst.ask.mode, analyst)
        return NoVerdict(str(error), stopped=False)
    except StoppedEarly as error:
        ray.get(analyst.board.stop.remote(str(error), StoppedEarly.exit_code))
        return NoVerdict(str(error), stopped=True)
    found = compare_sides(first, second, again, _about(drawn, share))
    busy = first.seconds + second.seconds + again.seconds
    canary = Canary(orjson.loads(orjson.dumps(found.as_json())), busy)
    _store(trial, canary.mode, analyst)
    write_json(folder.root / FILE, canary.found)
    return canary


def _way(mode: Mode, analyst: AnalyseSettings) -> Way:
    ask = replace(analyst.ask, mode=mode)
    kept = ray.get(analyst.answers.learned.remote(estimates_name(analyst.provider, ask)))
    earlier = earlier_of(decode_kept(kept))
    return Way(mode, analyst.provider, ask, analyst.pack_tokens, earlier)


async def _ask(trial: Trial, drawn: Drawn, analyst: AnalyseSettings) -> Sides:
    provider = analyst.provider
    permits = RayPermits(provider.base_url, key_variable(provider), provider.limits.to_limits())
    spend = RaySpend(analyst.spend)
    watch = _posting(analyst, spend, drawn.distinct)
    return await trial.ask(drawn.records, permits, spend, watch, of=drawn.distinct)


def _posting(analyst: AnalyseSettings, spend: RaySpend, records: int) -> Watch:
    """Tells the board how far the canary is and what was spent, and hears from it whether to stop.
    `records`: about how many the run has, for which time must be left before its deadline."""
    deadline = analyst.deadline
    until = None if deadline is None else deadline.asking_ends(records)

    async def post(name: str, dispatcher: Dispatcher) -> None:
        dispatcher.time_left.until = until
        stop = await analyst.board.post.remote(
            f"canary: {name}",
            dispatcher.progress,
            dispatcher.asker.counts,
            asdict(await dispatcher.asker.permits.stats()),
            dispatcher.asker.capabilities.json,
            {"spend": spend.seen.as_facts()},
        )
        if stop is not None:
            dispatcher.stop(stop)

    return post


def _store(trial: Trial, mode: Mode, analyst: AnalyseSettings) -> None:
    """Store the answers of `mode` for the run, which goes on in it."""
    rows = list(trial.kept[mode].rows.items())
    ray.get(analyst.answers.put_many.remote(rows, replace=analyst.ask.since is not None))


def _about(drawn: Drawn, share: float) -> dict[str, Any]:
    return {
        "sample": {
            "records": len(drawn.records),
            "distinct": drawn.distinct,
            "share_wanted": share,
        }
    }
