"""Where the files are that `serve`, `models` and `search` in fupan.yaml name.

Invariant: a path means the same in every process of the gateway, whatever folder that was started
in.
"""

from __future__ import annotations

from pathlib import Path

from serve.gateway.settings import GatewaySettings
from serve.models.settings import EmbedderSettings, Entry, PoolSettings
from serve.search.state import search_paths

PATHS = ("keys", "state")
"""The keys of `serve` that are paths."""


def absolute(settings: GatewaySettings, folder: Path | None) -> GatewaySettings:
    """`settings` with its relative paths seen from `folder`, which is absolute; None: there is no
    folder that they could be seen from. Raises ValueError then."""
    found = {}
    for name in PATHS:
        value = getattr(settings.serve, name)
        if value is None:
            continue
        path = Path(value).expanduser()
        if folder is None and not path.is_absolute():
            raise ValueError(
                f"serve.{name}: {value!r} is relative, and a replica may run in any folder: write "
                "the whole path, or name a fupan.yaml by `config`, beside which it is looked for"
            )
        found[name] = str(path if folder is None else folder / path)
    models = {name: _beside(each, folder) for name, each in settings.models.items()}
    serve = settings.serve.model_copy(update=found)
    search = None if settings.search is None else search_paths(settings.search, folder)
    return settings.model_copy(update={"serve": serve, "models": models, "search": search})


def _beside(entry: Entry, folder: Path | None) -> Entry:
    """`entry` with the model's path, where there is something at it in `folder`, made whole; any
    other is a name, or a path already."""
    if isinstance(entry, PoolSettings):
        pool = {name: _beside(each, folder) for name, each in entry.pool.items()}
        return entry.model_copy(update={"pool": pool})
    key = "embedder" if isinstance(entry, EmbedderSettings) else "generator"
    path = Path(getattr(entry, key)).expanduser()
    if folder is None or not (folder / path).exists():
        return entry
    return entry.model_copy(update={key: str(folder / path)})
