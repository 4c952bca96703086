"""What lies in the folder of the index and belongs to nothing: removed, by its one writer.

Invariant: what a replica may be reading stays for KEPT_SECONDS after nothing names it any more, and
what is of a run that may be there yet, or may take vectors over from it, for HELD_SECONDS: vectors
take hours to make.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from serve.search.vectors import FOLDER as VECTORS

KEPT_SECONDS = 60.0
"""A folder that nothing names any more stays so long, for replicas that are reading it."""

HELD_SECONDS = 24 * 3600.0
"""What is of a run that cannot be seen or read now, or has not all its vectors, stays so long: a
volume that is away comes back, and texts of what was deleted are to go. It begins anew with each
writer: while none ran, nobody could see whether it was back, and at a start it may come late."""


class Leftovers:
    """Of the index in the folder `state`."""

    def __init__(self, state: Path, clock: Callable[[], float]) -> None:
        self._state = state
        self._clock = clock
        self._unnamed: dict[Path, float] = {}

    def tidy(self) -> None:
        """Remove what a writer that was killed left half written."""
        for folder in ("", "segments/", "graphs/", "models/", f"{VECTORS}/*/*/"):
            for each in self._state.glob(f"{folder}.*.part"):
                with contextlib.suppress(OSError):
                    shutil.rmtree(each) if each.is_dir() else each.unlink()

    def sweep(
        self, segments: Collection[str], graphs: Collection[str], held: Collection[str]
    ) -> None:
        """Remove what is none of these, and was none for a while. `held`: the ids of runs that are
        not searched now and not known to be gone, and of those that have not all their vectors."""
        unnamed = [
            *(each for each in whole_in(self._state / "segments") if each.name not in segments),
            *(each for each in whole_in(self._state / VECTORS) if each.name not in segments),
            *(each for each in whole_in(self._state / "graphs") if each.name not in graphs),
        ]
        now = self._clock()
        self._unnamed = {each: self._unnamed.get(each, now) for each in unnamed}
        for each, since in self._unnamed.items():
            run = each.name.rsplit("-", 2)[0]  # of RUN-FINGERPRINT-FORMAT
            if now - since >= (HELD_SECONDS if run in held else KEPT_SECONDS):
                shutil.rmtree(each, ignore_errors=True)


def whole_in(folder: Path) -> list[Path]:
    """What is whole in a folder, sorted."""
    if not folder.is_dir():
        return []
    return sorted(each for each in folder.iterdir() if not each.name.startswith("."))
