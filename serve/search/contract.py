"""What the gateway asks of the search, whichever process it is in. Plain values, no I/O.

Invariant: what fails is a SearchError; all is asked for one tenant, "" where nobody has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class Piece(NamedTuple):
    """Which bytes of a file: `size` from `offset` on, of the one that was in this `state`."""

    offset: int
    size: int
    state: str


class Search(Protocol):
    """The search, as `SearchServer` answers it."""

    async def search(self, tenant: str, body: Mapping[str, Any], seconds: float) -> bytes:
        """The answer to a query, as JSON. Raises BadQuery, NoMeaning, SearchDown."""
        ...

    async def reports(self, tenant: str, seconds: float) -> bytes:
        """The runs that a tenant sees, as JSON. Raises SearchDown."""
        ...

    async def file(self, tenant: str, run: str, name: str, seconds: float) -> bytes:
        """About a file of a run, by the id or the name of that, as JSON: the id of the `run`,
        `headers`, its `size`, and `state`, which differs where what is in it may. Raises
        NoSuchReport, AmbiguousReport, SearchDown."""
        ...

    async def piece(self, tenant: str, run: str, name: str, piece: Piece, seconds: float) -> bytes:
        """Bytes of a file of a run. Raises NoSuchReport where it is not the same any more,
        AmbiguousReport, and SearchDown."""
        ...
