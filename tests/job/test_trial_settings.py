"""What may be said of a canary, a deadline and instructions, and what it is taken for."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from typer.testing import CliRunner

from job import cli
from job.config import resolve
from job.errors import UsageError
from job.flags import Flags


def flags(tmp_path: Path, config: str, **given: Any) -> Flags:
    """Those of a model, and what `config` says under `run`."""
    path = tmp_path / "fupan.yaml"
    path.write_text(f"run: {{{config}}}")
    known = {"inputs": ("x",), "base_url": "https://x/v1", "model": "m", "config": str(path)}
    return replace(Flags(), **known | given)


@pytest.mark.parametrize(
    ("config", "given", "share"),
    [
        ("canary: 10", {}, 0.1),
        ("canary: 10", {"mode": "single"}, None),
        ("canary: 10, mode: single", {"mode": "packed"}, 0.1),
        ("canary: 10", {"canary": 25.0}, 0.25),
    ],
)
def test_a_mode_that_was_typed_wins_over_a_canary_of_the_file(
    tmp_path: Path, config: str, given: dict[str, Any], share: float | None
) -> None:
    assert resolve(flags(tmp_path, config, **given)).canary == share


@pytest.mark.parametrize(
    ("config", "given", "said"),
    [
        ("canary: 10, mode: single", {}, "run.canary .* needs run.mode: packed"),
        ("mode: single", {"canary": 10.0}, "--canary .* needs --mode packed"),
        ("canary: 10", {"canary": 10.0, "mode": "single"}, "--canary .* needs --mode packed"),
        ("", {"deadline": "07:30+05:00"}, "--deadline .*without an offset"),
        ("", {"deadline": "07:30Z"}, "--deadline .*without an offset"),
        ("", {"answers": "~nobody-here/x.db"}, "--answers ~nobody-here/x.db"),
        ("", {"known": "~nobody-here/known.yaml"}, "--known ~nobody-here"),
        ("", {"instructions": "~nobody-here/rules.txt"}, "--instructions ~nobody-here"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(
    tmp_path: Path, config: str, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        resolve(flags(tmp_path, config, **given))


def test_the_built_in_analyst_shortens_no_instructions() -> None:
    with pytest.raises(UsageError, match=r"--provider extractive .*--compress-instructions"):
        resolve(Flags(inputs=("x",), provider="extractive", compress_instructions=True))


@pytest.mark.thorough
@pytest.mark.ray
def test_the_deadline_that_was_chosen_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.log").write_text("2026-03-14 10:00:00 INFO all is well\n")
    zone = ZoneInfo("Asia/Shanghai")
    past = datetime.now(zone) - timedelta(minutes=1)
    words = ["plan", "app.log", "--base-url", "http://127.0.0.1:1/v1", "--model", "m"]
    words += ["--answers", "answers.db", "--timezone", str(zone), "--deadline", f"{past:%H:%M:%S}"]
    ended = CliRunner().invoke(cli.app, words)
    tomorrow = past + timedelta(days=1)
    assert f"deadline: {tomorrow:%Y-%m-%d %H:%M:%S} Asia/Shanghai" in ended.stderr
