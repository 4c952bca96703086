"""Settings -> who analyses the records: the asking actor's settings, or the built-in analyst.

Invariant: what is handed on holds no key; each process reads it from its own environment.
"""

from __future__ import annotations

from typing import Any

from job.analyse.analyst import AnalyseSettings
from job.analyse.owner import Owner
from job.analyse.stored import AskSettings
from job.config import Settings
from job.local_model import start_local
from job.planning import RunPlan
from job.ration.closing import earlier_closings
from job.ration.deadline import Deadline
from job.spend.spending import journal_path
from serve.ask.answers_actor import start_answers
from serve.ask.limiter_actor import RayPermits
from serve.ask.settings import key_variable
from serve.ask.spend_actor import start_spend
from serve.ask.spend_host import Purse


def choose_analyst(
    settings: Settings, plan: RunPlan, board: Any, since: float | None, purse: Purse
) -> AnalyseSettings | str:
    """The settings of the asking actor, or the language of the built-in analyst. `board`: an actor
    handle; `since`: from when on answers are recalled (see `AskSettings`); `purse`: what may be
    spent."""
    if settings.provider is None:
        return plan.language
    answers = start_answers(settings.store)
    # Its process starts while the asking actor's does, which would have to wait for it.
    provider = settings.provider
    RayPermits(provider.base_url, key_variable(provider), provider.limits.to_limits())
    deadline = None
    if settings.deadline is not None:
        deadline = Deadline(settings.deadline, earlier_closings(answers))
    return AnalyseSettings(
        settings.provider,
        ask_settings(settings, plan, since=since),
        settings.pack_tokens,
        answers,
        board,
        Owner(),
        start_spend(journal_path(settings), purse),
        rationed=deadline is not None or settings.max_spend is not None,
        deadline=deadline,
        model=start_local(provider),
    )


def ask_settings(settings: Settings, plan: RunPlan, since: float | None = None) -> AskSettings:
    """How the records of a run are asked. `since`: see `AskSettings`."""
    return AskSettings(
        settings.model,
        plan.language,
        settings.mode,
        since,
        settings.own_instructions,
        settings.tiers,
    )
