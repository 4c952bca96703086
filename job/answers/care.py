"""What a run does for the store of answers beside asking: let old answers go, say what happened.

Invariant: what was set aside is said in the run in which it was; at its end nothing about the store
keeps a run from its report.
"""

from __future__ import annotations

import sqlite3
import time

from job.answers.recalls import NAME, decode_recalls
from job.answers.words import damage_words, lasting_words
from job.boundary import as_job_error
from job.config import Settings
from job.errors import JobError
from job.planning import has_answers, open_answers
from job.progress import View
from serve.ask.answers_file import StoreError
from serve.ask.answers_redis import RedisAnswers
from serve.ask.answers_redis_upkeep import lasting

_DAY = 86_400


def check_answers(settings: Settings) -> None:
    """See that the store can be opened, and forget what is older than the user wants to keep."""
    if settings.provider is None and not has_answers(settings):
        return
    days = settings.privacy.keep_days
    with open_answers(settings) as answers:
        if days is not None:
            # Whole numbers: a product of any number of days has no float.
            answers.prune(int(time.time()) - days * _DAY)


def close_account(settings: Settings, view: View | None, began: float) -> list[str]:
    """Note what was recalled by the asking in `view`, if that counts; what a user should know of
    the store since `began` (seconds since the epoch)."""
    try:
        if view is not None and settings.provider is not None and has_answers(settings):
            with open_answers(settings) as answers:
                recalls = decode_recalls(answers.learned(NAME), time.time())
                recalls.add(settings.model, view.asking, view.calls)
                answers.keep_learned(NAME, recalls.encode())
        return damage_warnings(settings, began)
    except (JobError, StoreError, sqlite3.Error, OSError) as error:
        return [f"at the end of the run {as_job_error(error)}"]


def damage_warnings(settings: Settings, began: float) -> list[str]:
    """What was set aside since `began` (seconds since the epoch); of a Redis, what it does not
    keep."""
    if not has_answers(settings):
        return []
    with open_answers(settings) as answers:
        if isinstance(answers, RedisAnswers):
            found = lasting(answers)
            return lasting_words(answers.at, found) if found is not None else []
        return [damage_words(damage) for damage in answers.damages() if damage.at >= began]
