"""Where the folders are that the `search` section names. Pure.

Invariant: a path means the same in every process, whatever folder that was started in.
"""

from __future__ import annotations

from pathlib import Path

from serve.ask.answers import default_path
from serve.search.settings import SearchSettings

FOLDER = "search"
"""Of the index, beside the user's answers, where the settings name none."""


def search_folder(state: str | None) -> Path:
    """The folder of the index: `search.state`, else beside the user's answers."""
    return Path(state).expanduser().absolute() if state else default_path().parent / FOLDER


def with_absolute_paths(search: SearchSettings, folder: Path) -> SearchSettings:
    """`search` with its relative paths seen from `folder`, which is absolute."""

    def seen(path: str) -> str:
        return str(folder / Path(path).expanduser())

    runs = tuple(each.model_copy(update={"path": seen(each.path)}) for each in search.runs)
    state = None if search.state is None else seen(search.state)
    return search.model_copy(update={"runs": runs, "state": state})
