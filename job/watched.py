"""While records are asked: what the person who waits sees, and how they end it.

Invariant: Ctrl-C or SIGTERM once ends the asking and leaves a partial report, twice the command.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import ray

from job.errors import StoppedEarly
from job.progress import View
from job.show import Watcher

LOOK_SECONDS = 2.0
"""The progress waits so long for the board: four looks."""


def look(board: Any, timeout: float | None = None) -> View:
    """What the board (an actor handle) shows. Raises GetTimeoutError after `timeout` seconds."""
    view: View = ray.get(board.view.remote(), timeout=timeout)
    return view


@contextmanager
def watched(board: Any, watcher: Watcher, slices: int) -> Iterator[None]:
    """Show what the board shows while the block asks about so many slices, and let it be ended."""
    with watcher.board(lambda: look(board, LOOK_SECONDS), slices), _interrupts(board):
        yield


@contextmanager
def _interrupts(board: Any) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        board.stop.remote(f"interrupted by {signal.Signals(number).name}", StoppedEarly.exit_code)
        signal.signal(number, signal.default_int_handler)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, stop) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
