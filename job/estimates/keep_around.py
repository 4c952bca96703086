"""What a run took around its calls, kept for the plans of those that follow.

Invariant: nothing here decides what a run does or says.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from job.analyse.analyst import AnalyseSettings
from job.analyse.learned import around_name
from job.answers.remember import remember
from job.estimates.around import Around, RunAround, decode_around, encode_around
from job.naming.calls import NamingCalls
from job.progress import View
from job.timing import Stations

ONCE = ("canary", "compress")
"""Stations that only some runs have, with calls of their own."""


def keep_around(
    analyst: AnalyseSettings,
    view: View,
    records: int,
    started: datetime,
    stations: Stations,
    naming: NamingCalls,
) -> None:
    """Have the store remember what a run of so many records took that asked for names. A run that
    recalled most of them says nothing of one that asks."""
    if view.asking.recalled > view.asking.answered:
        return
    named = naming.busy.seconds
    overhead = stations.timing(view.asking.busy, named)["overhead_s"]
    mine = RunAround(
        uuid.uuid4().hex[:12],
        started.timestamp(),
        records,
        max(0.0, overhead - sum(stations.seconds.get(name, 0.0) for name in ONCE)),
        naming.counts.requests,
        naming.counts.tokens_in,
        naming.counts.tokens_out,
        named,
        _handed_on(view.facts.get("routing") or {"tiers": ()}),
    )
    remember(
        analyst.answers,
        around_name(analyst.provider, analyst.ask),
        lambda kept: encode_around(decode_around(kept).merged(Around((mine,)))),
    )


def _handed_on(routing: Mapping[str, Any]) -> dict[str, float]:
    asked = {tier["model"]: tier["answered"] + tier["escalated"] for tier in routing["tiers"]}
    return {
        tier["model"]: tier["escalated"] / asked[tier["model"]]
        for tier in routing["tiers"]
        if asked[tier["model"]]
    }
