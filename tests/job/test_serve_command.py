"""`fupan serve`: what makes no sense is told before anything starts."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from job import cli
from job.commands.serve_command import search_warnings
from serve.search.settings import SearchSettings

Serve = Callable[..., Result]
LOCAL = "providers: {main: {base_url: 'http://127.0.0.1:9/v1', models: [small]}}\n"
AWAY = LOCAL.replace("http://127.0.0.1:9/v1'", "https://llm.example/v1', key_env: NOT_THERE_KEY")


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.delenv("FUPAN_KEYS", raising=False)

    def run(config: str, *flags: str) -> Result:
        Path("fupan.yaml").write_text(config, encoding="utf-8")
        return CliRunner().invoke(cli.app, ["serve", *flags])

    return run


@pytest.mark.parametrize(
    ("config", "flags", "said"),
    [
        ("{}\n", (), "no provider to ask: write one in fupan.yaml"),
        (AWAY, (), "the environment variable NOT_THERE_KEY is not set"),
        (LOCAL + "serve: {prot: 1}\n", (), "serve.prot: unknown key, did you mean port?"),
        (LOCAL + "serve: {names: {x: {use: [main/large]}}}\n", (), "serve.names.x.use"),
        (LOCAL + "serve: {keys_env: NOT_THERE_KEYS}\n", (), "NOT_THERE_KEYS"),
        (LOCAL, ("--replicas", "many"), "--replicas 'many'"),
        (LOCAL, ("--replicas", "0"), "--replicas '0'"),
        (LOCAL, ("--host", "no.such.host.invalid"), "cannot listen on no.such.host.invalid"),
    ],
)
def test_what_makes_no_sense_is_exit_2(
    serve: Serve, config: str, flags: tuple[str, ...], said: str
) -> None:
    ended = serve(config, *flags)
    assert ended.exit_code == 2
    assert said in ended.stderr


@pytest.mark.parametrize("variable", [None, "RAY_SERVE_HAPROXY_STATS_PORT"])
def test_a_port_that_is_taken_is_exit_2(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, variable: str | None
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        flags = ["--port", port]
        if variable:
            monkeypatch.setenv(variable, port)
            flags = ["--port", "0", "--fast"]
        ended = serve(LOCAL, *flags)
    assert ended.exit_code == 2
    assert (
        f":{port}: Address already in use. {variable or '--port'} chooses another" in ended.stderr
    )


def test_a_cluster_that_is_joined_chooses_its_own_ingress(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as cluster:
        cluster.bind(("127.0.0.1", 0))
        cluster.listen()
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{cluster.getsockname()[1]}")
        ended = serve(LOCAL, "--fast")
    assert ended.exit_code == 2
    assert "environment of its nodes" in ended.stderr


def test_who_will_find_no_runs_is_warned(tmp_path: Path) -> None:
    there, nowhere = str(tmp_path), str(tmp_path / "nowhere")
    search = SearchSettings.model_validate(
        {"runs": [{"path": there}, {"path": there, "tenant": "team-a"}, {"path": nowhere}]}
    )
    assert [nowhere in said for said in search_warnings(search, keyless=False)] == [True]
    told = search_warnings(search, keyless=True)
    assert ["team-a" in said for said in told] == [True, False]
    assert search_warnings(None, keyless=True) == []
