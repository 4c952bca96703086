"""The command as a user types it, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq

_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def fupan(*arguments: str | Path, **environment: str) -> Ended:
    """Run `fupan` with `arguments`; the answers of the user are never touched."""
    assert "run" not in arguments or "--answers" in arguments
    done = subprocess.run(
        [sys.executable, "-m", "job", *map(str, arguments)],
        cwd=_ROOT,
        env=os.environ | {"RAY_USAGE_STATS_ENABLED": "0"} | environment,
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def read_json(path: Path) -> Any:
    """A JSON file of a run."""
    return orjson.loads(path.read_bytes())


def read_lines(path: Path) -> list[dict[str, Any]]:
    """A JSON lines file of a run."""
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def read_results(out: Path) -> list[dict[str, Any]]:
    """The result rows of a run, by id."""
    rows = [
        row
        for part in sorted((out / "results").glob("*.parquet"))
        for row in pq.read_table(part).to_pylist()
    ]
    return sorted(rows, key=lambda row: str(row["id"]))
