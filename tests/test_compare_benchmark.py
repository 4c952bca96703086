"""What the benchmark of comparisons takes for a canary that did its work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from job.report.trial import canary_notice
from job.report.words import Language, Words
from scripts.benchmarks.compare import Run, bars_of_run

CALLS = 100


def ended(folder: Path, mode: str, notice: str | None, position: int | None, language: str) -> Run:
    """A run that went on in `mode`, with `notice` on top of its report."""
    canary = {"position": position}
    run = {"mode": mode, "language": language, "canary": canary}
    report = {"run": run, "ledger": {"calls": {"requests": CALLS}}}
    (folder / "report.json").write_bytes(orjson.dumps(report))
    top = "" if notice is None else f"> {notice}\n\n"
    (folder / "report.md").write_text(f"# Day\n\n{top}All the rest\n", encoding="utf-8")
    return Run(0, folder, CALLS)


def missed(run: Run, mode: str) -> list[str]:
    return [bar.what for bar in bars_of_run(run, "it", mode) if not bar.holds]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_is_on_top_and_the_position_count(tmp_path: Path, language: Language) -> None:
    verdict: dict[str, Any] = {
        "verdict": "bad",
        "reason": "fades",
        "before": 1.0,
        "after": 0.2,
        "position": 20,
        "longest_pack": 40,
        "records": 300,
    }
    notice = canary_notice({"canary": verdict}, Words(language))
    assert missed(ended(tmp_path, "packed", None, None, language), "packed") == []
    assert missed(ended(tmp_path, "packed", notice, None, language), "packed") == [
        "it: said on top of the report"
    ]
    assert missed(ended(tmp_path, "single", notice, 20, language), "single") == []
    assert missed(ended(tmp_path, "single", None, 20, language), "single") == [
        "it: position on top of the report",
        "it: said on top of the report",
    ]
    assert missed(ended(tmp_path, "single", notice, 40, language), "single") == [
        "it: positions beside the true one"
    ]
