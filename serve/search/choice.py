"""Which model gives the search its vectors. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from serve.models.settings import EmbedderSettings, Entry, served
from serve.search.settings import BUNDLED, SearchSettings


def embedder_of(search: SearchSettings, models: Mapping[str, Entry]) -> str:
    """The name in `models` of the embedder of the search; BUNDLED: its own. Raises ValueError where
    a name leads to none."""
    embedders = [name for name, each, _ in served(models) if isinstance(each, EmbedderSettings)]
    if search.embedder is None:
        return embedders[0] if embedders else BUNDLED
    if search.embedder != BUNDLED and search.embedder not in embedders:
        known = ", ".join([*embedders, BUNDLED])
        raise ValueError(f"search.embedder: no embedder {search.embedder!r}; there are: {known}")
    return search.embedder
