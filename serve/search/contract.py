"""What the gateway asks of the search, whichever process it is in. Plain values, no I/O.

Invariant: what fails is a SearchError; all is asked for one tenant, "" where nobody has one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Protocol


class Search(Protocol):
    """The search, as `SearchServer` answers it."""

    async def search(self, tenant: str, body: Mapping[str, Any], seconds: float) -> bytes:
        """The answer to a query, as JSON. Raises BadQuery, NoMeaning, SearchDown."""
        ...

    async def reports(self, tenant: str) -> bytes:
        """The runs that a tenant sees, as JSON. Raises SearchDown."""
        ...

    def file(self, tenant: str, run: str, name: str) -> AsyncGenerator[bytes]:
        """A file of a run: its headers as a JSON object, then its bytes. Raises NoSuchReport,
        SearchDown."""
        ...
