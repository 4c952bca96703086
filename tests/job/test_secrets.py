"""The exam: no seeded secret in any request, file or log line of a run.

What is private in the folder of `secret_files` is looked for, raw, encoded and in part, in all that
reached the provider, in every file the run left, in what it printed and in Ray's own logs.
"""

from __future__ import annotations

import gzip
import shutil
import sqlite3
import tempfile
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from job.clean.cleaner import Cleaner, CleanSettings
from job.mask.masking import Masker
from job.mask.source_names import with_shown_names
from job.read import plan_inputs, read_slice
from job.records import SliceCounts
from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from serve.simulated_truth import Cause, Truth, Wording
from tests.command import Ended, fupan
from tests.job.secret_files import hunted, leaks, write_secret_day
from tests.job.secret_seeds import READABLE, SEEDS, Seed

MASKER = Masker(b"k" * 32)
_URL_SECRET = "Ba5eUrlPa55"
_COMMAND_SECRETS = {
    _URL_SECRET: "password of --base-url",
    "sk1p-hunter-77": "a pattern of fupan.yaml",
}


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.kind)
def test_every_kind_is_masked_and_what_is_around_it_stays(seed: Seed) -> None:
    masked, counts = MASKER.mask(f"{seed.said} {READABLE[0]}")
    assert counts
    assert not [part for part in seed.hunted if part in masked]
    assert masked.endswith(READABLE[0])


@pytest.mark.parametrize("text", READABLE)
def test_what_a_reader_needs_is_readable(text: str) -> None:
    assert MASKER.mask(text) == (text, {})


def test_the_exam_asks_for_every_secret(day: Path) -> None:
    files = [path for path in day.rglob("*") if path.is_file()]
    read = (path.read_bytes() for path in files)
    read = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data for data in read)
    given = b"\n".join(read).decode() + " ".join(map(str, files))
    wanted = hunted()
    assert set(leaks(given, wanted)) == set(wanted.values())


@pytest.mark.slow
def test_no_secret_is_left_in_what_reading_and_cleaning_hand_on(day: Path) -> None:
    settings = CleanSettings(date(2026, 3, 14), UTC, MASKER)
    plan = with_shown_names(plan_inputs([str(day)], reference=date(2026, 3, 14), zone=UTC), MASKER)
    counts: Counter[str] = Counter()
    left: dict[str, dict[str, str]] = {}
    for part in plan.slices:
        cleaner = Cleaner(settings, SliceCounts(part.source, 0))
        for raw in read_slice(part):
            cleaned = cleaner.clean(raw)
            counts[type(cleaned).__name__] += 1
            if found := leaks(str(cleaned), hunted()):
                left[f"{part.source} at {raw.position}"] = found
    assert not left, "\n".join(f"{place}: {found}" for place, found in left.items())
    assert counts["Record"] > 1000
    assert counts["Rejected"] > 100


class _Recorder(ThreadingHTTPServer):
    """Hands every request on to a provider and keeps all that was in it."""

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Recording)
        self.upstream = upstream
        self.seen: list[str] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Recording(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Recorder

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append(f"{self.path}\n{self.headers}\n{body.decode()}")
        request = urllib.request.Request(  # noqa: S310 - the provider of this test
            self.server.upstream + self.path,
            data=body,
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            reply = answer.read()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test prints for itself."""


@contextmanager
def _recorded() -> Iterator[_Recorder]:
    """A provider that finds a problem in every record, behind a recorder."""
    words = Wording(event="It failed", cause="Something broke", suggestion="Mend it")
    cause = Cause(name="all", phrases=("a", "e", "是", "1", "<"), answers=(words,))
    settings = Settings(truth=Truth(causes=(cause,)), time_scale=50.0)
    with SimulatedProvider(settings) as provider:
        server = _Recorder(provider.base_url.removesuffix("/v1"))
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("day") / "logs"
    write_secret_day(folder)
    return folder


@pytest.fixture
def ray_logs() -> Iterator[Path]:
    # Short: Ray puts sockets below it, whose paths may have 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.ray
def test_no_secret_leaves_a_run_with_a_model(day: Path, tmp_path: Path, ray_logs: Path) -> None:
    out = tmp_path / "retro"
    config = tmp_path / "fupan.yaml"
    config.write_text(f"inputs: [{{path: '{day}', skip: ['password=sk1p-hunter-77']}}]\n")
    with _recorded() as server:
        url = f"http://someone:{_URL_SECRET}@127.0.0.1:{server.port}/v1"
        ended = fupan(
            *("run", "--config", config, "--out", out, "--answers", tmp_path / "store" / "a.db"),
            *("--base-url", url, "--model", "simulated", "--context", "4096", "--timezone", "UTC"),
            RAY_TMPDIR=str(ray_logs),
        )
        requests = "\n".join(server.seen)
    if ended.code == 2:
        assert _URL_SECRET not in ended.err
        with _recorded() as server:
            ended = fupan(
                *("run", "--config", config, "--out", out),
                *("--answers", tmp_path / "store" / "a.db", "--model", "simulated"),
                *("--base-url", f"http://127.0.0.1:{server.port}/v1", "--context", "4096"),
                *("--timezone", "UTC"),
                RAY_TMPDIR=str(ray_logs),
            )
            requests = "\n".join(server.seen)
    assert ended.code == 0, ended.err
    assert requests.count("/chat/completions") > 5
    _check({"requests": requests}, ended, out, tmp_path / "store", ray_logs)
    for readable in READABLE:
        assert readable in requests


@pytest.mark.ray
def test_no_secret_leaves_a_run_without_a_model(day: Path, tmp_path: Path, ray_logs: Path) -> None:
    out, store = tmp_path / "retro", tmp_path / "store"
    ended = fupan(
        *("run", day, "--out", out, "--answers", store / "a.db", "--timezone", "UTC"),
        *("--provider", "extractive"),
        RAY_TMPDIR=str(ray_logs),
    )
    assert ended.code == 0, ended.err
    shown = fupan("plan", day, "--answers", store / "a.db", "--timezone", "UTC")
    rendered = fupan("report", out)
    _check({"plan": shown.out + shown.err, "rendered": rendered.out}, ended, out, store, ray_logs)


def _check(places: dict[str, str], ended: Ended, out: Path, store: Path, ray_logs: Path) -> None:
    assert [path for path in ray_logs.rglob("*.log") if path.stat().st_size]
    places |= {"stdout": ended.out, "stderr": ended.err}
    for folder in (out, store, ray_logs):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                places[str(path.relative_to(folder.parent))] = _text_of(path)
                places[f"name of {path.name}"] = str(path.relative_to(folder))
    wanted = hunted() | _COMMAND_SECRETS
    found = {place: leaked for place, text in places.items() if (leaked := leaks(text, wanted))}
    assert not found, "\n".join(
        f"{place}: {kind}: {around!r}"
        for place, leaked in found.items()
        for kind, around in leaked.items()
    )


def _text_of(path: Path) -> str:
    if path.suffix == ".parquet":
        return "\n".join(str(row) for row in pq.read_table(path).to_pylist())
    if path.suffix == ".db":
        with sqlite3.connect(path) as database:
            return "\n".join(
                str(row) + "".join(_decoded(cell) for cell in row)
                for (table,) in database.execute(
                    "select name from sqlite_master where type='table'"
                )
                for row in database.execute(f'select * from "{table}"')  # noqa: S608
            )
    return path.read_bytes().decode("utf-8", "replace")


def _decoded(cell: object) -> str:
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else ""
