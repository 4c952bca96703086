"""A day asked by the dispatcher itself, in one process, in packs of one size or of the size that
finds itself: no reading, no Ray, no naming, so that what differs is the packs alone."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from job.analyse.dispatch import Dispatcher
from job.analyse.learning import Learning
from job.analyse.requests import instruction_tokens
from job.analyse.stored import AskSettings
from job.analyse.waiting import LINGER_SECONDS
from job.clean.cleaner import LINE_TOKENS, SLOW_OVER
from job.estimates.kept import Kept, RunEstimates, earlier_of
from job.estimates.reserve import RESERVE_TOKENS
from job.pack.packing import Fit
from job.records import Record
from job.trial.kept import Kept as KeptAnswers
from scripts.benchmarks.provider import Provider
from scripts.benchmarks.workload import MODEL
from scripts.days.compose import Entry
from serve.ask import settings as asked
from serve.ask.ask import Asker
from serve.ask.limiter_host import InProcessPermits
from serve.ask.tokens import count
from serve.simulated import Settings, Truth


@dataclass(frozen=True, slots=True)
class Setting:
    """Under what the day is asked. `rpm`, `tpm`: a minute of the provider's; `faults`: share of
    rows lost by tokens of a request."""

    name: str
    rpm: int | None = None
    tpm: int | None = None
    burst: int | None = None
    faults: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """What a day took. `minutes`: of the provider's time, from the first request to the last
    answer; `again`: of `rows` that were sent in packs, those that had to be sent again;
    `unanswered`: records without an answer in the end; `learned`: what is kept for the next run;
    `facts`: what timing.json shows of the packs."""

    minutes: float
    calls: int
    tokens: int
    rows: int
    again: int
    unanswered: int
    learned: RunEstimates
    facts: Mapping[str, Any]

    @property
    def share(self) -> float:
        """Of rows asked again."""
        return self.again / self.rows


def records_of(entries: Sequence[Entry]) -> list[Record]:
    """The day as records, cleaned as `clean` would."""
    records = []
    for place, entry in enumerate(entries):
        tokens = count(entry.text)
        slow = tokens + LINE_TOKENS + RESERVE_TOKENS > SLOW_OVER
        records.append(
            Record(
                id=f"r{place}",
                source=f"{entry.kind}.log",
                position=place,
                time=entry.time,
                kind=entry.kind,
                lang=entry.lang,
                text=entry.text,
                tokens=tokens,
                lane="slow" if slow else "fast",
                digest=hashlib.blake2b(f"{place}{entry.text}".encode(), digest_size=16).hexdigest(),
            )
        )
    return records


def ask_day(
    records: Sequence[Record],
    setting: Setting,
    truth: Truth,
    context: int,
    scale: float,
    pack_tokens: int | None,
    learned: RunEstimates | None = None,
) -> Asked:
    """Ask about `records` with a provider of their own. `pack_tokens`: None, the size finds itself,
    beginning with what was `learned`."""
    settings = Settings(
        models=(MODEL,),
        context=context,
        truth=truth,
        time_scale=scale,
        rpm=setting.rpm,
        request_burst=setting.burst,
        tpm=setting.tpm,
        row_faults=setting.faults,
    )
    with Provider(settings) as provider:
        limits = asked.LimitSettings(
            rpm=setting.rpm and setting.rpm * scale,
            tpm=setting.tpm and setting.tpm * scale,
            burst=setting.burst,
        )
        asking = asyncio.run(
            _ask(
                records,
                asked.Provider(
                    base_url=provider.base_url, models=(MODEL,), context=context, limits=limits
                ),
                scale,
                pack_tokens,
                learned,
            )
        )
        stats = provider.stats()["classes"]["analysis"]
    size, unanswered = asking.learning.size, asking.progress.failed + asking.progress.unasked
    if size is None:
        raise RuntimeError("packs of one record each have no size")
    facts = size.facts()
    return Asked(
        # The provider's clock starts with the first request.
        stats["last_answer"] / 60,
        stats["requests"],
        stats["prompt_tokens"] + stats["completion_tokens"],
        sum(seen["rows"] for seen in facts["by_size"]),
        sum(seen["again"] for seen in facts["by_size"]),
        unanswered,
        asking.learning.entry(setting.name, began=0.0),
        facts,
    )


async def _ask(
    records: Sequence[Record],
    provider: asked.Provider,
    scale: float,
    pack_tokens: int | None,
    learned: RunEstimates | None,
) -> Dispatcher:
    ask = AskSettings(MODEL, "en")
    fit = Fit(provider.context, None, instruction_tokens("en"))
    if pack_tokens is not None:
        fit = fit.with_pack_tokens(pack_tokens)
    asker = Asker(provider, MODEL, InProcessPermits(provider.limits.to_limits()))
    asking = Dispatcher(asker, KeptAnswers(), ask, fit, linger=LINGER_SECONDS / scale)
    asking.learning = Learning.about(provider, fit, pack_tokens)
    asking.learning.begin_with(earlier_of(Kept((learned,) if learned else ())))
    running = asyncio.create_task(asking.run())
    try:
        await asking.submit(records)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await asker.aclose()
    return asking
