"""The `serve` section of fupan.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from job.config_file import ConfigFile, load_config
from job.errors import UsageError
from serve.gateway.settings import TASKS, TaskSettings


def read(tmp_path: Path, section: str) -> ConfigFile:
    file = tmp_path / "fupan.yaml"
    file.write_text(f"serve: {section}", encoding="utf-8")
    return load_config(str(file))


def test_without_it_the_gateway_is_for_this_machine(tmp_path: Path) -> None:
    serve = load_config(str(_empty(tmp_path))).serve
    assert (serve.host, serve.port) == ("127.0.0.1", 8000)


def test_tasks_are_added_to_the_built_in_ones(tmp_path: Path) -> None:
    serve = read(
        tmp_path, "{tasks: {qa: {max_tokens: 9, timeout: 1}, poem: {max_tokens: 5, timeout: 2}}}"
    ).serve
    assert serve.tasks["qa"] == TaskSettings(max_tokens=9, timeout=1)
    assert serve.tasks["poem"].max_tokens == 5
    assert serve.tasks["code"] == TASKS["code"]


@pytest.mark.parametrize(("written", "meant"), [("on", True), ("off", False), ('"off"', False)])
def test_metrics_are_on_or_off(tmp_path: Path, written: str, meant: bool) -> None:
    assert read(tmp_path, f"{{metrics: {written}}}").serve.metrics is meant


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("{prot: 80}", "serve.prot: unknown key, did you mean port?"),
        ("{cache: {exakt: true}}", "serve.cache.exakt: unknown key, did you mean exact?"),
        ("{port: 70000}", "serve.port"),
        ("{join_tokens: 0}", "serve.join_tokens"),
        ("{names: {best: {use: []}}}", "serve.names.best.use"),
    ],
)
def test_what_makes_no_sense_is_named(tmp_path: Path, section: str, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("?", r"\?")):
        read(tmp_path, section)


def _empty(tmp_path: Path) -> Path:
    file = tmp_path / "fupan.yaml"
    file.write_text("{}", encoding="utf-8")
    return file
