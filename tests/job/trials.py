"""A day of records that a simulated provider knows the answers to, asked in two ways."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from job.analyse.stored import AskSettings
from job.compare.comparison import Comparison, compare
from job.compare.meaning import Meaning
from job.pack.packing import Mode
from job.records import Record
from job.trial.trial import Sides, Trial
from job.trial.ways import Way
from serve.ask.contract import Usage
from serve.ask.limiter import Limits
from serve.ask.limiter_host import InProcessPermits
from serve.ask.settings import Provider
from serve.ask.spend import Call, Ended
from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from serve.simulated_truth import Truth
from tests.job.make import record

FADES_FROM = 12
TRUTH = Truth.model_validate(
    {
        "causes": [
            {
                "name": name,
                "phrases": [phrase],
                "outcome": "problem",
                "severity": severity,
                "answers": [{"event": phrase, "cause": cause, "suggestion": suggestion}],
            }
            for name, phrase, severity, cause, suggestion in (
                ("disk", "disk is full", "high", "old logs were kept", "rotate the logs"),
                ("login", "login refused", "low", "the token expired", "renew tokens in time"),
            )
        ],
    }
)
WORDS = ("disk is full", "login refused", "all is well")


def day(count: int) -> list[Record]:
    """Records of one kind; a third is normal."""
    return [record(f"{WORDS[n % 3]} on machine {n}") for n in range(count)]


def provider_settings(**more: Any) -> Settings:
    """A provider that knows the day; `more`: how it misbehaves."""
    return Settings.model_validate({"truth": TRUTH, "time_scale": 200.0, **more})


class NoCap:
    """A `Spend` that lets everything pass and counts the attempts."""

    def __init__(self) -> None:
        self.attempts = 0

    async def reserve(self, ticket: str, call: Call) -> None:
        self.attempts += 1

    async def settle(self, ticket: str, ended: Ended, usage: Usage | None = None) -> None:
        pass


def make_trial(base_url: str, modes: tuple[Mode, Mode] = ("single", "packed")) -> Trial:
    """Both modes, of the provider at `base_url`."""
    provider = Provider.model_validate(
        {
            "base_url": base_url,
            "models": ("simulated",),
            "prices": {"currency": "USD", "input": "1", "output": "2"},
        }
    )
    ask = [AskSettings("simulated", "en", mode, tiers=("simulated",)) for mode in modes]
    first, second = (Way(each.mode, provider, each, None) for each in ask)
    return Trial(first, second)


def ask_both(
    server: SimulatedProvider, records: Sequence[Record], spend: NoCap | None = None, of: int = 0
) -> tuple[Trial, Sides]:
    """Both modes asked about `records`."""
    trial = make_trial(server.base_url)

    async def ask() -> Sides:
        permits = InProcessPermits(Limits(max_concurrency=16))
        return await trial.ask(records, permits, spend or NoCap(), of=of)

    return trial, asyncio.run(ask())


def compared(sides: Sides) -> Comparison:
    """The comparison of `sides`, by equal words alone."""
    return compare(*sides, Meaning())
