"""What a run must share with an earlier one to go on in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from job.config import resolve
from job.options import Flags
from job.planning import plan_run
from job.run_json import identity


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
