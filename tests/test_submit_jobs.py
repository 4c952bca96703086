"""scripts/submit against a head whose answers are made up: broken connections, every way to end."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSCloseCode, web

from job.errors import UsageError
from scripts.submitting import cli, jobs
from scripts.submitting.cli import main
from scripts.submitting.jobs import Ended, Jobs
from tests.serving import serving

ROOT = Path(__file__).resolve().parents[1]
JOB = "raysubmit_test"
KEY = "sk-only-here-0123456789"


@dataclass
class Head:
    """The jobs API as Ray's head has it. `logs`: what each look at the log shows, the last one
    whole; `hangs`: a log that does not end until the job is stopped."""

    status: str = "SUCCEEDED"
    code: int | None = 0
    message: str = ""
    logs: Sequence[str] = ("done\n",)
    hangs: bool = False
    looks: int = 0
    stops: int = 0
    sent: list[dict[str, Any]] = field(default_factory=list)

    def application(self) -> web.Application:
        application = web.Application(client_max_size=2**30)
        router = application.router
        router.add_get("/api/version", self._version)
        router.add_get("/api/packages/gcs/{name}", self._no_package)
        router.add_put("/api/packages/gcs/{name}", self._package)
        router.add_post("/api/jobs/", self._submit)
        router.add_get("/api/jobs/{job}", self._info)
        router.add_get("/api/jobs/{job}/logs", self._log)
        router.add_get("/api/jobs/{job}/logs/tail", self._tail)
        router.add_post("/api/jobs/{job}/stop", self._stop)
        return application

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": "4", "ray_version": "2.60.0", "ray_commit": "x"})

    async def _no_package(self, _: web.Request) -> web.Response:
        return web.Response(status=404)

    async def _package(self, request: web.Request) -> web.Response:
        await request.read()
        return web.Response()

    async def _submit(self, request: web.Request) -> web.Response:
        self.sent.append(await request.json())
        return web.json_response({"job_id": JOB, "submission_id": JOB})

    async def _info(self, _: web.Request) -> web.Response:
        running = self.looks < len(self.logs) or (self.hangs and not self.stops)
        status = "RUNNING" if running else "STOPPED" if self.stops else self.status
        told = {"type": "SUBMISSION", "submission_id": JOB, "entrypoint": "x", "status": status}
        return web.json_response(
            told | {"driver_exit_code": self.code, "message": self.message, "metadata": {}}
        )

    async def _log(self, _: web.Request) -> web.Response:
        return web.json_response({"logs": self.logs[-1]})

    async def _stop(self, _: web.Request) -> web.Response:
        self.stops += 1
        return web.json_response({"stopped": True})

    async def _tail(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        log = self.logs[min(self.looks, len(self.logs) - 1)]
        self.looks += 1
        await socket.send_str(log)
        if self.looks < len(self.logs):
            if request.transport is not None:
                request.transport.abort()
            return socket
        if self.hangs and not self.stops:
            await socket.receive()
        await socket.close(code=WSCloseCode.OK)
        return socket


@pytest.fixture(autouse=True)
def _no_address_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAY_ADDRESS", "RAY_API_SERVER_ADDRESS", "RAY_AUTH_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(jobs, "LOOK_SECONDS", 0.05)


def test_a_log_that_breaks_off_is_gone_on_with_and_nothing_shows_twice() -> None:
    head = Head(logs=("one\ntwo\n", "one\ntwo\nthr", "one\ntwo\nthree\n"))
    shown: list[str] = []
    with serving(head.application()) as url:
        assert Jobs(url).follow(JOB, shown.append) == Ended(0)
    assert "".join(shown) == "one\ntwo\nthree\n"


def test_a_log_that_breaks_off_for_good_is_told_with_the_way_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(Head(logs=("same\n",) * 99).application()) as url:
        words = words_for(url, tmp_path, "docs/sample-day", "--fetch", str(tmp_path / "here"))
        assert main(words) == 1
    said = capsys.readouterr()
    assert said.out.count("same") == 1
    again = f"scripts/submit --address {url} --job {JOB} --fetch {tmp_path / 'here'}"
    assert again in " ".join(said.err.split())


@pytest.mark.parametrize(
    ("broken", "said"),
    [(KeyboardInterrupt(), "interrupted"), (OSError(28, "full"), "the disk is full")],
)
def test_a_report_that_did_not_come_is_told_with_the_way_back(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    broken: BaseException,
    said: str,
) -> None:
    def unpack(*_: object) -> None:
        raise broken

    monkeypatch.setattr(cli, "unpack", unpack)
    monkeypatch.setattr(cli, "_sent", lambda *_: (str(tmp_path), "gcs://archive.zip"))
    with serving(Head().application()) as url:
        words = ["--address", url, "--job", JOB, "--fetch", str(tmp_path / "here")]
        assert main(words) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert f"not fetched: {said}" in told
    assert f"--job {JOB} --fetch {tmp_path / 'here'}" in told


def test_what_was_shown_before_an_interrupt_is_not_shown_again_after_it() -> None:
    head = Head(logs=("one\ntwo\n",))
    shown: list[str] = []
    with serving(head.application()) as url:
        head_jobs = Jobs(url)
        for _ in range(2):
            assert head_jobs.follow(JOB, shown.append) == Ended(0)
    assert "".join(shown) == "one\ntwo\n"


@pytest.mark.parametrize(
    ("head", "code", "why"),
    [
        (Head("SUCCEEDED", 0), 0, ""),
        (Head("FAILED", 3), 3, ""),
        (Head("FAILED", 4), 4, ""),
        (Head("FAILED", -9), 1, "was killed"),
        (Head("FAILED", 137), 1, "was killed"),
        (Head("FAILED", None, "no module\nnamed x"), 1, "did not start: no module named x"),
        (Head("STOPPED", None), 4, "was stopped"),
    ],
)
def test_every_way_to_end_has_its_exit_code(head: Head, code: int, why: str) -> None:
    with serving(head.application()) as url:
        ended = Jobs(url).follow(JOB, str)
    assert ended.code == code
    assert why in (ended.why or "")


def test_what_is_no_cluster_is_exit_2(tmp_path: Path) -> None:
    with serving(web.Application()) as url:
        assert main(words_for(url, tmp_path, "docs/sample-day")) == 2
    with pytest.raises(UsageError, match="use http://"):
        Jobs("127.0.0.1:8265")


def test_the_run_is_told_to_end_in_order_and_no_key_travels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_API_KEY", KEY)
    head = Head()
    with serving(head.application()) as url:
        assert main(words_for(url, tmp_path, "docs/sample-day")) == 0
    (sent,) = head.sent
    assert sent["entrypoint"].startswith("python -m job run docs/sample-day --out")
    assert int(sent["runtime_env"]["env_vars"]["RAY_JOB_STOP_WAIT_TIME_S"]) >= 60
    assert KEY not in str(sent)


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "code", "stops"), [("s", 4, 1), ("", 130, 0)])
def test_an_interrupt_asks_whether_to_stop_or_to_leave(
    tmp_path: Path, answer: str, code: int, stops: int
) -> None:
    head = Head(hangs=True, logs=("working\n",))
    with serving(head.application()) as url, terminal() as (theirs, ours):
        running = submit(url, tmp_path, "docs/sample-day", stdin=ours)
        assert running.stdout is not None
        read_until(running.stdout.fileno(), b"working")
        running.send_signal(signal.SIGINT)
        read_until(running.stdout.fileno(), b"[l] ")
        os.write(theirs, f"{answer}\n".encode())
        assert running.wait(timeout=240) == code
    assert head.stops == stops


@pytest.mark.slow
def test_an_interrupt_without_a_terminal_leaves_the_run(tmp_path: Path) -> None:
    head = Head(hangs=True, logs=("working\n",))
    with serving(head.application()) as url:
        running = submit(url, tmp_path, "docs/sample-day")
        assert running.stdout is not None
        read_until(running.stdout.fileno(), b"working")
        running.send_signal(signal.SIGINT)
        said = read_until(running.stdout.fileno(), b"")
        assert running.wait(timeout=240) == 130
    assert f"scripts/submit --address {url} --job {JOB}".encode() in said
    assert head.stops == 0


def words_for(url: str, out: Path, *arguments: str) -> list[str]:
    return ["--address", url, *arguments, "--out", str(out / "out")]


def submit(
    url: str, out: Path, *arguments: str, stdin: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """The script in a process of its own, to be interrupted."""
    return subprocess.Popen(
        [sys.executable, "scripts/submit", *words_for(url, out, *arguments)],
        cwd=ROOT,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # What runs the tests in the background has interrupts ignored, and children inherit that.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


@contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal."""
    ends = pty.openpty()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


def read_until(descriptor: int, wanted: bytes) -> bytes:
    """What was written up to `wanted`; all of it for b""."""
    seen = b""
    while not wanted or wanted not in seen:
        more = os.read(descriptor, 4096)
        if not more:
            break
        seen += more
    assert wanted in seen, seen
    return seen
