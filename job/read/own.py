"""Which files were written by runs: reports, results, the store of answers.

Invariant: a folder is a run's by what is in it, not by its name; only what lies below the input as
the user named it is judged, so that a run's folder can be an input when it is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from job.run_folder import is_run_folder


class OwnFiles:
    """Files of runs. `written`: files and folders that the run at hand writes."""

    def __init__(self, written: Iterable[Path] = ()) -> None:
        self._written = frozenset(os.path.realpath(path) for path in written)
        self._folders: dict[tuple[str, str], bool] = {}

    def is_written(self, path: str) -> bool:
        """Whether `path` itself is what the run at hand writes."""
        return os.path.realpath(path) in self._written

    def hold(self, path: str, named: str) -> bool:
        """Whether `path` is a run's, or lies in a folder of a run below `named`."""
        return path != named and (
            self.is_written(path) or self._holds(os.path.dirname(path), named)
        )

    def _holds(self, folder: str, named: str) -> bool:
        if len(folder) <= len(named) or not folder.startswith(named):
            return False
        if (folder, named) not in self._folders:
            self._folders[folder, named] = (
                self.is_written(folder)
                or is_run_folder(Path(folder))
                or self._holds(os.path.dirname(folder), named)
            )
        return self._folders[folder, named]
