"""The end of a run against its deadline."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from job.analyse.analyst import AnalyseSettings
from job.analyse.owner import Owner
from job.analyse.stored import AskSettings
from job.ending import why_stopped
from job.progress import Progress, View
from job.ration.closing import naming_calls
from job.ration.deadline import REACHED, Deadline
from serve.ask.settings import Provider

PROVIDER = Provider(base_url="http://127.0.0.1:9/v1", models=("m",))
ANALYST = AnalyseSettings(PROVIDER, AskSettings("m", "en"), None, None, None, Owner(), None)


def due(seconds: float) -> AnalyseSettings:
    """The analyst of a run whose report is due in so many seconds."""
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    return replace(ANALYST, deadline=Deadline(at))


def test_without_a_deadline_names_are_waited_for() -> None:
    calls = naming_calls(ANALYST, View())
    assert calls is not None
    assert calls.seconds is None


def test_at_a_deadline_names_are_asked_for_as_long_as_there_is_time() -> None:
    for view in (View(), View(stop=REACHED)):
        calls = naming_calls(due(60), view)
        assert calls is not None
        assert calls.seconds is not None
        assert calls.seconds < 60
        assert naming_calls(due(1), view) is None
    # a great day leaves less of the same minute
    great = naming_calls(due(60), View(records=10_000_000))
    assert great is None


def test_nobody_is_asked_for_names_after_any_other_stop_or_without_a_model() -> None:
    assert naming_calls(due(60), View(stop="interrupted by SIGINT")) is None
    assert naming_calls("en", View()) is None


def test_a_deadline_that_left_nothing_out_does_not_make_a_run_partial() -> None:
    assert why_stopped(View(stop=REACHED), {"unasked": 0}) is None
    assert why_stopped(View(stop=REACHED), {"unasked": 1}) == REACHED


def test_packs_that_would_have_ended_too_late_are_why_a_run_is_partial() -> None:
    assert why_stopped(View(asking=Progress(late=1)), {"unasked": 1}) == REACHED
