"""What is shown of runs: a list, and the files that may be read of each.

A file is opened without following a symbolic link (folders.py), by a name of a fixed list. A page
is hostile until shown otherwise: whoever wrote a log wrote a part of it. So it is sent with headers
that let it run nothing, load nothing and be framed by nobody.

Invariant: no byte leaves a run's folder but those of FILES.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, BinaryIO

import orjson

from serve.search.contract import Piece
from serve.search.errors import DamagedRun, NoSuchReport
from serve.search.folders import open_plain, opened, stat_plain
from serve.search.runs import RunFolder

PAGE = "report.html"
FILES = {
    PAGE: "text/html; charset=utf-8",
    "report.md": "text/plain; charset=utf-8",
    "report.json": "application/json",
    "ledger.json": "application/json",
    "timing.json": "application/json",
    "evidence.csv": "text/csv; charset=utf-8",
    "review.jsonl": "application/x-ndjson",
    "failed.jsonl": "application/x-ndjson",
    "rejected.jsonl": "application/x-ndjson",
}
"""What is served of a run, and as what. Not run.json, which tells of this machine's folders."""
SHOWN = ("text/html; charset=utf-8", "text/plain; charset=utf-8", "application/json")
"""What a browser may show; the rest it saves."""
HEADERS = {
    # Sandboxed, the page has no origin: it could not ask this gateway anything even by a script.
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "private, no-cache",
}
PIECE = 256 * 2**10
"""Bytes of a file that are read at once."""


def headers_of(name: str) -> dict[str, str]:
    """The headers of the answer that a file of FILES is sent in."""
    kind = FILES[name]
    shown = "inline" if kind in SHOWN else "attachment"
    return {**HEADERS, "content-type": kind, "content-disposition": f'{shown}; filename="{name}"'}


def open_file(run: RunFolder, name: str) -> BinaryIO:
    """A file of a run. Raises NoSuchReport where it is none of FILES, or is not there."""
    if name in FILES:
        with suppress(OSError):
            return open_plain(run.root, os.path.join(run.path, name))
    raise NoSuchReport(f"This run has no file {name[:60]!r}; it may have: {', '.join(FILES)}.")


def file_state(run: RunFolder, name: str) -> tuple[int, str]:
    """How long a file of a run is, and what differs where what is in it may. Raises
    NoSuchReport."""
    with open_file(run, name) as file:
        return _state(file)


def _state(file: BinaryIO) -> tuple[int, str]:
    found = os.fstat(file.fileno())
    return found.st_size, f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}"


def read_piece(run: RunFolder, name: str, piece: Piece) -> bytes:
    """Some bytes of a file of a run. Raises NoSuchReport where it is not the same any more."""
    with open_file(run, name) as file, suppress(OSError):
        if _state(file)[1] == piece.state:
            return os.pread(file.fileno(), min(piece.size, PIECE), piece.offset)
    raise NoSuchReport(f"The file {name!r} of this run was changed while it was sent: ask again.")


class Summaries:
    """What a list shows of runs, read again where one's report was written again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, dict[str, Any]]] = {}
        """By the id of the run, and when its report.json was written."""

    def of(self, run: RunFolder) -> dict[str, Any]:
        """Of one run. Raises DamagedRun and OSError."""
        with opened(run.root, run.path) as folder:
            seen = stat_plain(folder, "report.json")
        written = 0 if seen is None else seen.st_mtime_ns
        known = self._known.get(run.id)
        if known is None or known[0] != written:
            known = self._known[run.id] = written, _summary(run)
        return known[1]


def _summary(run_folder: RunFolder) -> dict[str, Any]:
    """Out of its report.json. Raises DamagedRun and OSError."""
    try:
        with open_file(run_folder, "report.json") as file:
            report = orjson.loads(file.read())
        run, period, ledger = report["run"], report["period"], report["ledger"]
        return {
            "headline": str(report["headline"]),
            "first": _text(period["first"]),
            "last": _text(period["last"]),
            "timezone": _text(period["timezone"]),
            "language": _text(run["language"]),
            "model": _text(run["model"]),
            "finished": _text(run["finished"]),
            "stopped": _text(run["stopped"]),
            "records": _count(ledger["records"]),
            "themes": len(report["themes"]),
        }
    except NoSuchReport as error:
        raise DamagedRun("report.json is missing, or is no plain file") from error
    except (ValueError, LookupError, TypeError) as error:
        raise DamagedRun(f"report.json is no report: {str(error)[:100]}") from error


def _count(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < 2**53:
        raise ValueError("it counts no records")
    return value


def _text(value: object) -> str | None:
    return None if value is None else str(value)
