"""The end of a run against its deadline: how long earlier ends took, and time for the names.

Invariant: what is learned here decides when a run stops asking, never what it says.
"""

from __future__ import annotations

import time
from typing import Any

import ray

from job.analyse.analyst import AnalyseSettings
from job.answers.remember import remember
from job.naming.calls import NamingCalls
from job.progress import View
from job.ration.deadline import LEARNED, REACHED, Closing


def earlier_closings(answers: Any) -> Closing:
    """What the store of answers (an actor handle) knows of earlier runs."""
    return Closing.decode(ray.get(answers.learned.remote(LEARNED)))


def keep_closing(answers: Any, records: int, view: View, naming: NamingCalls) -> None:
    """Have the store remember how long a run of so many records took from its last answer to its
    report, which is there now. A run that only recalled says nothing of that."""
    if view.asking.last is None:
        return
    seconds, named = time.time() - view.asking.last, naming.busy.seconds
    remember(
        answers, LEARNED, lambda kept: Closing.decode(kept).seen(records, seconds, named).encode()
    )


def naming_calls(analyst: AnalyseSettings | str, view: View) -> NamingCalls | None:
    """Who asks the model for names; None where nobody is to be asked any more, or there is no time
    left for it."""
    if not isinstance(analyst, AnalyseSettings) or view.stop not in (None, REACHED):
        return None
    if analyst.deadline is None:
        return NamingCalls(analyst)
    seconds = analyst.deadline.naming_seconds(view.records, time.time())
    return None if seconds is None else NamingCalls(analyst, seconds=seconds)
