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


def search_paths(search: SearchSettings, folder: Path | None) -> SearchSettings:
    """`search` with its relative paths seen from `folder`, which is absolute; None: there is no
    folder that they could be seen from. Raises ValueError then."""

    def seen(path: str) -> str:
        given = Path(path).expanduser()
        if folder is None and not given.is_absolute():
            raise ValueError(
                f"search: {path!r} is relative, and a replica may run in any folder: write the "
                "whole path, or name a fupan.yaml by `config`, beside which it is looked for"
            )
        return str(given if folder is None else folder / given)

    runs = tuple(each.model_copy(update={"path": seen(each.path)}) for each in search.runs)
    state = None if search.state is None else seen(search.state)
    return search.model_copy(update={"runs": runs, "state": state})
