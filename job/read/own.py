"""Which files were written by runs: reports, results, the store of answers.

Invariant: a folder is a run's by what is in it, not by its name; only what lies below the input as
the user named it is judged, so that a run's folder can be an input when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable

from job.run_folder import is_run_folder
from job.storage.place import Place


class OwnFiles:
    """Files of runs. `written`: files and folders that the run at hand writes."""

    def __init__(self, written: Iterable[Place] = ()) -> None:
        self._written = frozenset(place.real() for place in written)
        self._folders: dict[tuple[Place, Place], bool] = {}

    def is_written(self, place: Place) -> bool:
        """Whether `place` itself is what the run at hand writes."""
        return place.real() in self._written

    def hold(self, place: Place, named: Place) -> bool:
        """Whether `place` is a run's, or lies in a folder of a run below `named`."""
        return place != named and (self.is_written(place) or self._holds(place.parent, named))

    def _holds(self, folder: Place, named: Place) -> bool:
        if len(folder.path) <= len(named.path) or not folder.path.startswith(named.path):
            return False
        if (folder, named) not in self._folders:
            self._folders[folder, named] = (
                self.is_written(folder)
                or is_run_folder(folder)
                or self._holds(folder.parent, named)
            )
        return self._folders[folder, named]
