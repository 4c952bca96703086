"""What a run does for the store of answers beside asking: let old answers go, say what happened.

Invariant: what was set aside is said in the run in which it was.
"""

from __future__ import annotations

import time

from job.config import Settings
from job.planning import open_answers
from job.store_words import damage_words

_DAY = 86_400


def check_answers(settings: Settings) -> None:
    """See that the store can be opened, and forget answers older than the user wants to keep."""
    if settings.provider is None and not settings.answers.exists():
        return
    days = settings.privacy.keep_days
    with open_answers(settings) as answers:
        if days is not None:
            answers.prune(time.time() - days * _DAY)


def damage_warnings(settings: Settings, since: float) -> list[str]:
    """What was set aside since then (seconds since the epoch), by whatever run."""
    if not settings.answers.exists():
        return []
    with open_answers(settings) as answers:
        return [damage_words(damage) for damage in answers.damages() if damage.at >= since]
