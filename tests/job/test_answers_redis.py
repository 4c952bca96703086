"""Paid answers in a Redis, as the commands see them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from job.answers.care import check_answers, damage_warnings
from job.answers.recalls import NAME, Recalls
from job.cli import app
from job.config import resolve
from job.flags import Flags
from job.planning import open_answers
from job.spend.spending import journal_path
from serve.ask.answers import answer_key, default_path
from serve.ask.answers_redis import AnswersInRedis, RedisAnswers
from serve.ask.answers_redis_layout import META
from serve.ask.redis_place import RedisPlace
from tests.redis_server import RedisServer, redis_server

pytestmark = pytest.mark.slow

DAY = 86_400


@pytest.fixture(autouse=True)
def clean(server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.clear()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def filled(server: RedisServer) -> RedisServer:
    """30 answers of one model, 10 days old; 20 of another, of today."""
    now = time.time()
    with opened(server, now - 10 * DAY) as store:
        store.put_many((answer_key(f"l{n}"), said("large", "x" * 900)) for n in range(30))
        store.keep_learned("once", b"1")
    with opened(server, now) as store:
        store.put_many((answer_key(f"s{n}"), said("small", "y")) for n in range(20))
        store.put_many([(answer_key("odd"), b"\x00 no JSON")])
        store.keep_learned(NAME, Recalls(now, 1).encode())
    return server


def opened(server: RedisServer, at: float) -> RedisAnswers:
    return RedisAnswers(AnswersInRedis(RedisPlace.of(server.url)), clock=lambda: at)


def said(model: str, text: str) -> bytes:
    return orjson.dumps({"answer": {"text": text}, "model": model})


def command(server: RedisServer, *words: str | Path) -> Result:
    return CliRunner().invoke(app, ["answers", *map(str, words), "--answers", server.url])


def shown(server: RedisServer, *words: str) -> dict[str, Any]:
    result = command(server, *words, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = orjson.loads(result.stdout)
    return found


def flags(server: RedisServer, **more: Any) -> Flags:
    return Flags(
        inputs=(),
        config="fupan.yaml",
        base_url="http://127.0.0.1:1/v1",
        model="m",
        answers=server.url,
        **more,
    )


def write_config(text: str) -> None:
    Path("a.log").write_text("2026-03-14 10:00:00 ERROR no\n")
    Path("fupan.yaml").write_text(f"inputs: [{{path: a.log}}]\n{text}\n")


def test_stats_tell_what_is_held(filled: RedisServer) -> None:
    found = shown(filled, "stats")
    assert (found["path"], found["version"], found["answers"]) == (filled.url, 1, 51)
    assert found["models"] == [
        {"model": "large", "answers": 30},
        {"model": "small", "answers": 20},
        {"model": None, "answers": 1},
    ]
    assert [each["name"] for each in found["learned"]] == ["once", NAME]
    assert found["oldest"] < found["newest"]
    assert found["recalled"]["runs"] == 1
    assert found["lasting"] == {"appendonly": True, "policy": "noeviction"}
    assert 30_000 < found["bytes"] < 60_000
    words = command(filled, "stats").stdout
    assert "30 by large" in words
    assert "warning" not in words
    with filled.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            assert "drops answers when its memory is full" in command(filled, "stats").stdout
        finally:
            client.config_set("maxmemory-policy", "noeviction")


def test_prune_forgets_by_age_and_by_model(filled: RedisServer) -> None:
    counted = shown(filled, "prune", "--older-than", "5", "--dry-run")
    assert (counted["answers"], counted["learned"], counted["bytes_before"]) == (30, 1, None)
    assert shown(filled, "stats")["answers"] == 51
    assert shown(filled, "prune", "--model", "small")["answers"] == 20
    pruned = shown(filled, "prune", "--older-than", "5")
    assert (pruned["answers"], pruned["learned"]) == (30, 1)
    left = shown(filled, "stats")
    assert (left["answers"], [each["name"] for each in left["learned"]]) == (1, [NAME])


def test_export_hands_every_answer_out(filled: RedisServer, tmp_path: Path) -> None:
    result = command(filled, "export", "--out", tmp_path / "all.jsonl")
    assert result.exit_code == 0, result.stderr
    lines = [orjson.loads(line) for line in (tmp_path / "all.jsonl").read_bytes().splitlines()]
    assert [line["key"] for line in lines] == sorted(line["key"] for line in lines)
    assert sum(line["model"] == "large" for line in lines) == 30
    (odd,) = [line for line in lines if "bytes" in line]
    assert bytes.fromhex(odd["bytes"]) == b"\x00 no JSON"
    assert result.stdout.endswith("51 answers\n")


def test_a_store_that_is_not_there_or_not_ours_is_told(server: RedisServer, tmp_path: Path) -> None:
    assert command(server, "stats").exit_code == 2
    assert "no answers in" in command(server, "stats").stderr
    with server.client() as client:
        client.set(META, b'{"application":"fupan","version":9}')
        for words in (command(server, "stats").stderr, command(server, "export").stderr):
            assert "newer version of fupan" in words
    away = CliRunner().invoke(app, ["answers", "stats", "--answers", f"unix://{tmp_path}/none"])
    assert away.exit_code == 2
    assert f"--answers unix://{tmp_path}/none does not answer" in " ".join(away.stderr.split())


@pytest.mark.parametrize(
    "answers",
    ["redis://:s3cret@127.0.0.1:1/0", "redis://u:s3cret@127.0.0.1:x", "rediss://:s3cret@h?a=b"],
)
def test_a_password_in_the_url_is_refused_and_not_repeated(answers: str) -> None:
    result = CliRunner().invoke(app, ["answers", "stats", "--answers", answers])
    assert result.exit_code == 2
    assert "s3cret" not in result.output + result.stderr
    write_config(f'run: {{answers: "{answers}"}}')
    result = CliRunner().invoke(app, ["answers", "stats"])
    assert result.exit_code == 2
    assert "s3cret" not in result.output + result.stderr


def test_fupan_yaml_may_name_the_store(filled: RedisServer) -> None:
    write_config(f'run: {{answers: "{filled.url}"}}')
    result = CliRunner().invoke(app, ["answers", "stats", "--json"])
    assert orjson.loads(result.stdout)["answers"] == 51
    settings = resolve(Flags(inputs=(), config="fupan.yaml"))
    assert str(settings.redis) == filled.url


def test_a_run_forgets_what_it_may_not_keep_and_keeps_the_rest_for_so_long(
    filled: RedisServer,
) -> None:
    write_config("privacy: {keep_days: 5}")
    settings = resolve(flags(filled))
    check_answers(settings)
    assert shown(filled, "stats")["answers"] == 21
    with open_answers(settings) as answers:
        answers.put_many([(answer_key("new"), said("m", "z"))])
    with filled.client() as client:
        expiring = [name for name in client.scan_iter("fupan:v1:answer:*") if client.ttl(name) > 0]
        assert len(expiring) == 1
        assert 4 * DAY < client.ttl(expiring[0]) <= 5 * DAY


def test_what_lies_beside_a_file_lies_in_the_users_own_folder(server: RedisServer) -> None:
    write_config("")
    assert journal_path(resolve(flags(server))).parent == default_path().parent


def test_a_redis_that_may_lose_answers_is_a_warning(server: RedisServer) -> None:
    write_config("")
    assert damage_warnings(resolve(flags(server)), 0.0) == []
    with redis_server("--appendonly", "no") as forgetful:
        (warning,) = damage_warnings(resolve(flags(forgetful)), 0.0)
    assert "appendonly is off" in warning
