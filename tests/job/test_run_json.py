"""What a run must share with an earlier one to go on in its folder."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from job.config import resolve
from job.flags import Flags
from job.planning import plan_run
from job.run_json import identity, run_json


def test_the_same_input_in_another_folder_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout is unpacked somewhere else each time it is sent to a cluster."""

    def of(place: str, text: str) -> dict[str, Any]:
        (tmp_path / place / "logs").mkdir(parents=True)
        (tmp_path / place / "logs" / "app.log").write_text(text)
        monkeypatch.chdir(tmp_path / place)
        answers = str(tmp_path / "answers.db")
        flags = Flags(inputs=("logs",), out=str(tmp_path / "out"), answers=answers, timezone="UTC")
        settings = resolve(flags)
        return identity(settings, plan_run(settings, keep=True))

    first = of("a", "2026-03-14 10:00:00 the disk is full\n")
    assert of("b", "2026-03-14 10:00:00 the disk is full\n") == first
    assert of("c", "2026-03-14 10:00:00 the disk is slow\n") != first


def test_what_is_private_in_the_name_of_a_folder_is_masked(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text("2026-03-14 10:00:00 the disk is full\n")
    earlier = str(tmp_path / "li.wei@example.org")
    flags = Flags(
        inputs=(str(tmp_path / "app.log"),),
        out=str(tmp_path / "out"),
        answers=str(tmp_path / "answers.db"),
        baseline=earlier,
    )
    settings = resolve(flags)
    told = run_json(settings, plan_run(settings, keep=True), datetime.now(UTC), None, None)
    assert "li.wei@example.org" not in str(told)
    assert "<email-" in told["baseline"]
