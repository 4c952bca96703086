"""A folder on object storage, held by one run at a time.

Each run that wants the folder puts an object of its own there and then lists all of them; listings
of such stores are consistent, so of two runs at least the later sees the other. The one that sees
no other renames its wish to a hold and renews it. A hold that was not renewed for `LEASE_SECONDS`
is a dead run's. Ages are differences of times of the store: no clock of a machine matters.

Invariant: a run becomes the holder only after a listing without any other live wish or hold, made
while its own wish stood; so two that both are renewed in time never hold the same folder. One that
was paused for longer learns at its next `check` that it lost the folder.
"""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from job.errors import OutputInUse
from job.storage.place import Place
from job.storage.store import store_words
from job.write import write_atomic

LOCK = ".lock"
"""Begins the names of the lock's files."""
LEASE_SECONDS = 30.0
"""A run that was killed keeps the next one waiting for so long."""
RENEW_SECONDS = 5.0
"""Six tries to renew a lease before it ends."""
LOOK_SECONDS = 1.0
_ENTRY = re.compile(re.escape(LOCK) + r"-(\d{6})-[0-9a-f]{8}\.(wanted|held)")


@dataclass(frozen=True, slots=True)
class _Entry:
    place: Place
    turn: int
    held: bool
    changed: datetime


def _entries(root: Place) -> dict[Place, _Entry]:
    found = {}
    for place, changed in root.listing():
        parts = _ENTRY.fullmatch(place.name)
        if parts and changed is not None:
            found[place] = _Entry(place, int(parts[1]), parts[2] == "held", changed)
    return found


@dataclass(slots=True)
class Lease:
    """The hold of this process on `root`."""

    root: Place
    turn: int
    _name: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    _lost: OutputInUse | None = None
    _ended: threading.Event = field(default_factory=threading.Event)

    @classmethod
    @contextmanager
    def taken(cls, root: Place) -> Iterator[Lease]:
        """Hold `root` for the length of the block. Raises OutputInUse if a live run holds it or is
        about to; waits for the end of a dead one's lease."""
        lease = cls(root, 1 + max((each.turn for each in _entries(root).values()), default=0))
        try:
            lease._take()
            thread = threading.Thread(target=lease._renew_until_ended, name="lease", daemon=True)
            thread.start()
            try:
                yield lease
            finally:
                lease._ended.set()
                thread.join()
        finally:
            for place in (lease._wanted, lease._held):
                place.unlink()

    def check(self) -> None:
        """Raise OutputInUse where another run has taken the folder over."""
        self._renew()
        if self._lost:
            raise self._lost

    @property
    def _wanted(self) -> Place:
        return self._entry("wanted")

    @property
    def _held(self) -> Place:
        return self._entry("held")

    def _entry(self, state: str) -> Place:
        return self.root / f"{LOCK}-{self.turn:06d}-{self._name}.{state}"

    def _take(self) -> None:
        first: dict[Place, datetime] = {}
        while True:
            write_atomic(self._wanted, b"")
            entries = _entries(self.root)
            mine = entries.pop(self._wanted, None)
            if mine is None:  # Taken for dead: this process slept.
                continue
            for entry in list(entries.values()):
                if (mine.changed - entry.changed).total_seconds() > LEASE_SECONDS:
                    entry.place.unlink()
                    del entries[entry.place]
            if not entries:
                break
            for entry in entries.values():
                # Alive is who was heard of twice; of two that wish, the first by name goes on.
                alive = entry.changed != first.setdefault(entry.place, entry.changed)
                if alive and (entry.held or entry.place < self._wanted):
                    raise OutputInUse(
                        f"{self.root} is in use by another run; wait for it or name another --out"
                    )
            time.sleep(LOOK_SECONDS)
        write_atomic(self._held, b"")
        self._wanted.unlink()

    def _renew_until_ended(self) -> None:
        while not self._ended.wait(RENEW_SECONDS):
            try:
                self._renew()
            except OSError as error:
                # The next try may do; what the run itself writes tells of a store that is away.
                if store_words(error) is None:
                    raise

    def _renew(self) -> None:
        entries = _entries(self.root)
        # By name: of two with the same turn one has lost, too.
        later = any(entry.held and entry.place > self._held for entry in entries.values())
        if self._held not in entries or later:
            self._lost = OutputInUse(
                f"{self.root} was taken over by another run, as this one gave no sign of life for "
                f"{LEASE_SECONDS:.0f} s; nothing more is written"
            )
        if self._lost is None:
            write_atomic(self._held, b"")
