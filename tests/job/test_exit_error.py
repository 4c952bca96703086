"""How a run that left its report ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from job.config import resolve
from job.ending import exit_error, why_stopped
from job.flags import Flags
from job.progress import View


@pytest.mark.parametrize(
    ("counts", "stop", "code"),
    [
        ({}, None, None),
        ({"unasked": 1}, None, 4),
        ({"unasked": 1}, "quota", 4),
        ({}, "quota", 4),
        ({"failed": 1}, None, None),
        ({"failed": 2}, None, 3),
        ({"failed": 2, "unasked": 1}, None, 4),
    ],
)
def test_a_run_is_complete_only_if_every_record_was_asked(
    counts: dict[str, int],
    stop: str | None,
    code: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = resolve(Flags(inputs=("x",), max_failed=0.01))
    ledger = {"records": 100, "unasked": 0, "failed": 0, "spend": {"capped": False}} | counts
    stopped = why_stopped(View(stop=stop), ledger)
    error = exit_error(settings, ledger, stopped)
    assert (error.exit_code if error else None) == code
    assert (stopped is None) == (code != 4)


def test_a_cap_that_stopped_some_of_the_models_is_why_records_were_not_asked() -> None:
    view = View(facts={"spend": {"refused": True}})
    assert why_stopped(view, {"unasked": 1}, "the cap is reached") == "the cap is reached"
    assert why_stopped(view, {"unasked": 0}, "the cap is reached") is None
