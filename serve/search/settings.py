"""The `search` section of fupan.yaml.

Invariant: an unknown key is an error; every folder of runs says whose it is, or is everybody's.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

EVERYBODY = "*"
"""The tenant of runs that everybody sees who may ask at all."""

BUNDLED = "bundled"
"""The model that comes with the package (serve.embedder), which the job's commands do not load to
read the settings."""

Tenant = Annotated[str, Field(pattern=r"^(\*|[A-Za-z0-9][A-Za-z0-9._-]{0,63})$")]
"""The tenant of API keys (docs/keys.md), or EVERYBODY."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RunsSettings(_Strict):
    """A folder of runs: itself what a run left, or such folders lie below it."""

    path: Annotated[str, Field(min_length=1)]
    tenant: Tenant | None = None
    """Whose keys see them. None: everybody, where no API keys are set up; where they are, it has to
    be said."""

    @property
    def owner(self) -> str:
        """The tenant that sees them, or EVERYBODY."""
        return EVERYBODY if self.tenant is None else self.tenant


class SearchSettings(_Strict):
    """What is searched, by which model, and where the index is kept."""

    runs: Annotated[tuple[RunsSettings, ...], Field(min_length=1)]
    embedder: Annotated[str | None, Field(min_length=1)] = None
    """The name of an embedder of `models`, or `bundled`: the model that comes with the package, in
    the processes of the search. None: the first embedder of `models`, where there is one, else
    `bundled`."""
    state: Annotated[str | None, Field(min_length=1)] = None
    """The folder of the index; None: beside the user's answers."""
    replicas: Annotated[int, Field(ge=1, le=64)] = 1
    """Processes that answer. One more makes the index."""
