"""A command that is run, watched and, where a benchmark wants it, killed.

Invariant: when a Command is left none of the processes it was seen to have is alive.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from scripts.benchmarks.memory import Look, Watch, alive
from scripts.benchmarks.workload import environment

_ROOT = Path(__file__).resolve().parents[2]
_LONGEST_SECONDS = 1800.0
_TAIL = 20
"""Lines of output that are shown."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended. `seconds`: its wall time; `peak_memory`: bytes of all its processes;
    `highest`: when they held most of their own; `tail`: the last lines it wrote."""

    exit_code: int
    seconds: float
    peak_memory: int
    highest: Look
    tail: str


class Command:
    """A context manager: the command runs, its output goes to the file `log`.

    `death_seconds`: what its other processes are given to notice that it has ended.
    """

    def __init__(self, command: Sequence[str], log: Path, death_seconds: float = 60.0) -> None:
        self._death_seconds = death_seconds
        self._command = list(command)
        self._log = log
        self._process: subprocess.Popen[bytes]
        self._watch: Watch
        self._began = 0.0

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                cwd=_ROOT,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._watch = Watch(self._process.pid).__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._watch.__exit__(kind, error, traceback)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._end_the_rest()

    @property
    def pid(self) -> int:
        """Of the command itself."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the command is still there."""
        return self._process.poll() is None

    def wait(self) -> Finished:
        """Wait for the end. Raises subprocess.TimeoutExpired after half an hour."""
        code = self._process.wait(timeout=_LONGEST_SECONDS)
        seconds = time.monotonic() - self._began
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        tail = "\n".join(lines[-_TAIL:])
        return Finished(code, seconds, self._watch.peak, self._watch.highest, tail)

    def interrupt(self) -> None:
        """Ask the command to end, as Ctrl-C does, and wait for it for as long as its other
        processes would be given."""
        self._watch.look()
        self._process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=self._death_seconds)

    def kill(self) -> int:
        """`kill -9` of the command alone, and wait until its other processes are gone too; how
        many of them had to be ended by force."""
        self._watch.look()
        self._process.kill()
        self._process.wait()
        return self._end_the_rest()

    def _end_the_rest(self) -> int:
        deadline = time.monotonic() + self._death_seconds
        while (left := alive(self._watch.seen)) and time.monotonic() < deadline:
            time.sleep(0.1)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(left)


def run_command(command: Sequence[str], log: Path) -> Finished:
    """Run a command to its end."""
    with Command(command, log) as running:
        return running.wait()
