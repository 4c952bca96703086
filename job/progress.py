"""How far a run is, for the person who waits and for the account of time.

Invariant: nothing here is part of the ledger; these counters may count a retried task twice and
are only shown. The board is also the way back: who posts learns whether the run should stop.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import ray

from job.records import SliceCounts
from serve.ask.ask import CallCounts


@dataclass(slots=True)
class Progress:
    """How far the asking is. `first`, `last`: when the first and the last answer came (seconds of
    the wall clock); `busy`: seconds in which a call was in flight or waited for its permit;
    `from_store`: records whose answer was there already, those to be reviewed among them; `late`:
    packs that were left out, since they would have ended after the deadline."""

    answered: int = 0
    recalled: int = 0
    review: int = 0
    failed: int = 0
    unasked: int = 0
    from_store: int = 0
    waiting_fast: int = 0
    waiting_slow: int = 0
    waiting_again: int = 0
    in_flight: int = 0
    peak_in_flight: int = 0
    packs: int = 0
    packed_records: int = 0
    splits: int = 0
    late: int = 0
    first: float | None = None
    last: float | None = None
    busy: float = 0.0

    @property
    def asked(self) -> int:
        """Records that ended with what they were asked for."""
        return self.answered + self.recalled + self.review + self.failed - self.from_store

    def begin(self, records: int) -> None:
        """A pack of so many records is sent."""
        self.packs += 1
        self.packed_records += records
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)

    def wait(self, fast: int, slow: int, again: int) -> None:
        """So many records wait in each lane, and to be asked again."""
        self.waiting_fast, self.waiting_slow, self.waiting_again = fast, slow, again


@dataclass(slots=True)
class BusyClock:
    """The time in which at least one of several overlapping things goes on."""

    _ended: float = 0.0
    _active: int = 0
    _since: float = 0.0

    @property
    def seconds(self) -> float:
        """Until now."""
        return self._ended + (time.monotonic() - self._since if self._active else 0.0)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Counts while the block runs."""
        if self._active == 0:
            self._since = time.monotonic()
        self._active += 1
        try:
            yield
        finally:
            self._active -= 1
            if self._active == 0:
                self._ended += time.monotonic() - self._since


@dataclass(slots=True)
class View:
    """What the board shows: sums over the actors that post and over the slices read so far."""

    asking: Progress = field(default_factory=Progress)
    calls: CallCounts = field(default_factory=CallCounts)
    limiter: dict[str, Any] = field(default_factory=dict)
    json_mode: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    records: int = 0
    rejected: int = 0
    skipped: int = 0
    folded: int = 0
    slices: int = 0
    stop: str | None = None
    stop_code: int | None = None


class Board:
    """The one place of a run where everybody says how far it is, and learns when to stop."""

    def __init__(self) -> None:
        self._view = View()
        self._calls: dict[str, CallCounts] = {}

    def slice_read(self, counts: SliceCounts) -> None:
        """A slice was read to its end."""
        view = self._view
        view.records += counts.records
        view.rejected += counts.rejected
        view.skipped += counts.skipped
        view.folded += counts.folded
        view.slices += 1

    def post(
        self,
        poster: str,
        progress: Progress,
        calls: CallCounts,
        limiter: dict[str, Any],
        json_mode: str,
        facts: dict[str, Any],
    ) -> str | None:
        """An asking actor says how far it is; returns the reason to stop, if there is one.
        `poster` names its incarnation: a restarted actor's calls are added, not lost. `facts`:
        what it learned, for `timing.json`."""
        self._calls[poster] = calls
        self._view.asking = progress
        self._view.calls = sum(self._calls.values(), CallCounts())
        self._view.limiter = limiter
        self._view.json_mode = json_mode
        self._view.facts = facts
        return self._view.stop

    def stop(self, reason: str, code: int) -> None:
        """End the run early with exit code `code`; the first reason stays."""
        if self._view.stop is None:
            self._view.stop, self._view.stop_code = reason, code

    def records(self) -> int:
        """Records in the slices that were read."""
        return self._view.records

    def stop_reason(self) -> str | None:
        """Why the run should stop; None while it should not."""
        return self._view.stop

    def view(self) -> View:
        """What is known now."""
        return self._view


def start_board() -> Any:
    """The board of a run, as an actor that takes no CPU."""
    return ray.remote(Board).options(num_cpus=0).remote()
