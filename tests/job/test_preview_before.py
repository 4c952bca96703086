"""What a plan takes over of a run in the folder is what the run takes over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from job.commands.preview_before import taken_over
from job.config import Settings, resolve
from job.flags import Flags
from job.planning import plan_run
from job.run_folder import CANARY, RunFolder
from job.run_json import identity
from job.write import write_json
from tests.job.test_canary import comparison


def settings(folder: Path, log: str = "app.log") -> Settings:
    (folder / log).write_text(f"2026-03-14 10:00:00 the disk is full, says {log}\n")
    return resolve(
        Flags(
            inputs=(str(folder / log),),
            base_url="http://127.0.0.1:9/v1",
            model="m",
            canary=10.0,
            out=str(folder / "out"),
            answers=str(folder / "answers.db"),
        )
    )


def found(made: Settings) -> tuple[str | None, bool, float | None]:
    """The mode of the canary, whether answers are recalled, since when."""
    over = taken_over(made, plan_run(made, keep=False))
    return over.canary.mode if over.canary else None, over.recalls, over.since


def stop(made: Settings) -> None:
    """Let a run of `made` begin at the second 100, find packs bad and be killed."""
    folder = RunFolder(made.out)
    told = identity(made, plan_run(made, keep=True))
    folder.begin(told, overwrite=False, fresh=made.fresh, clock=lambda: 100.0)
    write_json(folder.root / CANARY, comparison(25).as_json())


def test_the_canary_of_another_run_in_the_folder_is_not_taken(tmp_path: Path) -> None:
    yesterday = settings(tmp_path)
    stop(yesterday)
    assert found(yesterday) == ("single", True, None)
    assert found(replace(yesterday, canary=None)) == (None, True, None)
    assert found(settings(tmp_path, "today.log")) == (None, True, None)


@pytest.mark.parametrize("fresh", [True, False])
def test_a_stopped_run_that_asks_anew_goes_on_in_the_plan_too(tmp_path: Path, fresh: bool) -> None:
    made = replace(settings(tmp_path), fresh=True)
    assert found(made) == (None, False, None)
    stop(replace(made, fresh=fresh))
    assert found(made) == (("single", True, 100.0) if fresh else (None, False, None))
    assert found(replace(settings(tmp_path, "today.log"), fresh=True)) == (None, False, None)
