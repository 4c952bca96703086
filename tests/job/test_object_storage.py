"""Runs from and to an S3-compatible server, on a real Ray cluster: as with folders of this machine,
and what such a store does to a run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from job.run_folder import OWN_FILES
from tests.command import Ended, fupan, read_json
from tests.object_store import SECRET, Fault, ObjectStore, well

# Two or three runs each, one after the other.
pytestmark = pytest.mark.ray

LOGS = {
    "app/a.log": "".join(
        f"2026-03-14 10:{n // 60:02}:{n % 60:02} {level} {said} for order {n}\n"
        for n in range(300)
        for level, said in (
            ("INFO", "page was served"),
            ("ERROR", "payment failed because the gateway timed out"),
        )
    ),
    "chat.jsonl": '{"user": "u1", "text": "my refund has not arrived, finance is slow"}\n' * 30,
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ObjectStore]:
    """A server that holds the logs, as this machine does in `tmp_path`."""
    with ObjectStore() as server:
        server.make_bucket("bucket")
        for name, text in LOGS.items():
            server.put(f"bucket/logs/2026-03-14/{name}", text.encode())
            path = tmp_path / "logs" / "2026-03-14" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        yield server


def words(tmp_path: Path, out: str | Path) -> list[str | Path]:
    return [
        *("run", "--out", out, "--date", "2026-03-14", "--timezone", "UTC"),
        *("--answers", tmp_path / "answers.db", "--quiet"),
    ]


THERE = "s3://bucket/logs/{date}"


def there(server: ObjectStore, tmp_path: Path, *more: str) -> Ended:
    """The run from and to the server."""
    command = [*words(tmp_path, "s3://bucket/retro/{date}"), THERE, *more]
    return fupan(*command, **server.environment)


def report_of(server: ObjectStore) -> Any:
    return orjson.loads(server.get("bucket/retro/2026-03-14/report.json"))


def comparable(report: Any) -> Any:
    """A report without times, and without where it lies."""
    del report["timing"]
    for name in ("command", "started", "finished", "inputs"):
        del report["run"][name]
    report["run"].pop("identity")
    text = orjson.dumps(report, option=orjson.OPT_SORT_KEYS).decode()
    return re.sub(r'"(started|finished)":"[^"]*"', "", text)


def held(server: ObjectStore) -> list[str]:
    prefix = "retro/2026-03-14/"
    return [key.removeprefix(prefix) for key in server.keys("bucket", prefix)]


def test_a_run_on_the_store_leaves_what_one_on_this_machine_leaves(
    server: ObjectStore, tmp_path: Path
) -> None:
    ended = there(server, tmp_path)
    assert ended.code == 0, ended.err
    out = tmp_path / "retro"
    here = fupan(*words(tmp_path, out), str(tmp_path / "logs" / "{date}"))
    assert here.code == 0, here.err
    assert comparable(report_of(server)) == comparable(read_json(out / "report.json"))
    local = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert set(held(server)) == local - {".lock"}
    assert local >= set(OWN_FILES) - {"baseline.json", "canary.json"}
    assert server.unfinished("bucket") == 0
    written = b"".join(server.get(f"bucket/{key}") for key in server.keys("bucket"))
    assert SECRET.encode() not in written
    pieces = [piece for theme in report_of(server)["themes"] for piece in theme["evidence"]]
    assert pieces
    assert all(piece["line"] for piece in pieces)

    again = fupan("report", "s3://bucket/retro/2026-03-14", **server.environment)
    assert (again.code, again.lines) == (0, ["s3://bucket/retro/2026-03-14/report.html"])
    other = there(server, tmp_path, "--sample", "5")
    assert other.code == 2
    assert "other inputs or settings" in other.err


def test_a_run_that_was_killed_is_gone_on_with(server: ObjectStore, tmp_path: Path) -> None:
    begun = threading.Event()

    def watch(method: str, path: str) -> Fault | None:
        if method == "PUT" and "/.work/manifests/" in path:
            begun.set()
        return None

    server.mood = watch
    process = subprocess.Popen(
        [sys.executable, "-m", "job", *words(tmp_path, "s3://bucket/retro/{date}"), THERE],
        env=os.environ | server.environment,
        start_new_session=True,
    )
    assert begun.wait(480)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert any(name.startswith(".work/") for name in held(server))
    assert any(name.startswith(".lock-") for name in held(server))
    ended = there(server, tmp_path)
    assert ended.code == 0, ended.err
    assert not [name for name in held(server) if name.startswith(".")]
    assert report_of(server)["ledger"]["records"] == 630


def test_a_store_that_refuses_midway_is_told_and_the_same_command_goes_on(
    server: ObjectStore, tmp_path: Path
) -> None:
    def refuse(method: str, path: str) -> Fault | None:
        return (403, "AccessDenied") if method == "PUT" and "/results/" in path else None

    server.mood = refuse
    ended = there(server, tmp_path)
    assert ended.code == 1
    assert "fupan: s3://bucket/retro/2026-03-14/results/part-00000.parquet: the store" in ended.err
    assert len(ended.err.strip().splitlines()) == 1
    assert not [name for name in held(server) if name.startswith(("results/", ".lock"))]
    server.mood = well
    assert there(server, tmp_path).code == 0
    assert report_of(server)["ledger"]["records"] == 630
    assert not [name for name in held(server) if name.startswith(".")]


def test_wrong_credentials_end_a_command_before_anything_is_done(
    server: ObjectStore, tmp_path: Path
) -> None:
    wrong = server.environment | {"AWS_ACCESS_KEY_ID": "somebody-else"}
    commands: list[list[str | Path]] = [
        [*words(tmp_path, tmp_path / "out"), THERE],
        [*words(tmp_path, "s3://bucket/retro"), tmp_path / "logs"],
        ["report", "s3://bucket/retro"],
    ]
    for command in commands:
        ended = fupan(*command, **wrong)
        assert ended.code == 2
        assert "s3://bucket" in ended.err
        assert "AWS_ACCESS_KEY_ID" in ended.err
        assert SECRET not in ended.err
    assert server.keys("bucket", "retro") == []
