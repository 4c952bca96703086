"""A made day, a provider that knows it, and the command a user would type for it.

Invariant: provider and command are told the same limits, those of the 49-minute day.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.days.compose import Entry
from scripts.days.score import Key
from scripts.days.seed_day import make_seed_day, write_seed_day
from scripts.days.truth import TrueRecord, read_truth
from serve.simulated import Settings, load_truth

RPM = 60
"""Requests a minute."""
BURST = 60
CONTEXT = 8192
"""Tokens."""
MODEL = "simulated"
KEY_VARIABLE = "FUPAN_BENCH_KEY"
"""Holds the key of the command."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A day in `folder`; `scale`: simulated seconds in a real one."""

    folder: Path
    entries: list[Entry]
    truth: Mapping[Key, TrueRecord]
    scale: float

    @property
    def provider_truth(self) -> Path:
        """What the provider is to answer."""
        return self.folder / "provider.json"

    @property
    def input(self) -> Path:
        """The folder of the three files."""
        return self.folder / "input"


def prepare(args: argparse.Namespace, poison: int = 0) -> Workload:
    """Write the day that the command line asks for into the benchmark's folder."""
    folder = args.folder / "day"
    write_seed_day(folder, args.seed, args.records, poison)
    entries = make_seed_day(args.seed, args.records, poison)
    return Workload(folder, entries, read_truth(folder / "truth.json"), args.scale)


def provider_settings(workload: Workload, **more: Any) -> Settings:
    """The provider of the 49-minute day, and what `more` says beside."""
    limits = {"rpm": RPM, "request_burst": BURST}
    return Settings.model_validate(
        {
            "models": (MODEL,),
            "context": CONTEXT,
            "truth": load_truth(workload.provider_truth),
            "time_scale": workload.scale,
            **limits,
            **more,
        }
    )


def fupan_command(
    workload: Workload, base_url: str, out: Path, answers: Path, *limits: str
) -> list[str]:
    """`fupan run` on the day, as a user types it; `limits`: flags instead of the day's limits."""
    told = limits or ("--rpm", f"{RPM * workload.scale:g}", "--burst", str(BURST))
    return [
        *(sys.executable, "-m", "job", "run", str(workload.input), "--out", str(out)),
        *("--base-url", base_url, "--model", MODEL, "--api-key-env", KEY_VARIABLE),
        *told,
        *("--context", str(CONTEXT), "--answers", str(answers)),
    ]


def environment() -> dict[str, str]:
    """The environment of the command: this one's, and a key that the provider does not check."""
    return {**os.environ, KEY_VARIABLE: "unchecked"}
