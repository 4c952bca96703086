"""The search of this cluster, asked through Ray Serve.

Invariant: nothing but a SearchError leaves here (cancellation apart); a call whose task is
cancelled is cancelled in the replica too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ray import serve as ray_serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException

from serve.search.contract import Piece
from serve.search.errors import SearchDown, SearchError

APPLICATION = "fupan-search"
"""The name of the application in Ray Serve."""
DEPLOYMENT = "Search"
"""The name of the deployment that is asked."""
AGAIN_SECONDS = 2.0
"""After which a search that nobody answers may be tried again."""


class RaySearch:
    """`Search` through the deployment of this cluster."""

    def __init__(self) -> None:
        self._handle: Any = None

    async def search(self, tenant: str, body: Mapping[str, Any], seconds: float) -> bytes:
        """See `Search.search`."""
        return await self._asked("search", seconds, tenant, dict(body), seconds)

    async def reports(self, tenant: str, seconds: float) -> bytes:
        """See `Search.reports`."""
        return await self._asked("reports", seconds, tenant)

    async def file(self, tenant: str, run: str, name: str, seconds: float) -> bytes:
        """See `Search.file`."""
        return await self._asked("file", seconds, tenant, run, name)

    async def piece(self, tenant: str, run: str, name: str, piece: Piece, seconds: float) -> bytes:
        """See `Search.piece`."""
        return await self._asked("piece", seconds, tenant, run, name, piece)

    async def _asked(self, method: str, seconds: float, *given: Any) -> bytes:
        response: Any = None
        try:
            async with asyncio.timeout(seconds):
                response = getattr(await self._found(), method).remote(*given)
                return _given(await response)
        except asyncio.CancelledError:
            if response is not None:
                response.cancel()
            raise
        except (RayError, RayServeException, TimeoutError) as error:
            if response is not None:
                response.cancel()
            raise _down(error) from error

    async def _found(self) -> Any:
        """The deployment's handle. Raises SearchDown."""
        if self._handle is None:
            try:
                # It asks Ray Serve's controller, and waits for it.
                self._handle = await asyncio.to_thread(
                    ray_serve.get_deployment_handle, DEPLOYMENT, APPLICATION
                )
            except (RayError, RayServeException) as error:
                raise _down(error) from error
        return self._handle


def _given(value: bytes | SearchError) -> bytes:
    """What the replica gave. It hands an error over as a value."""
    if isinstance(value, SearchError):
        raise value
    return value


def _down(error: Exception) -> SearchDown:
    if isinstance(error, TimeoutError):
        return SearchDown("The search did not answer in time; try again.")
    return SearchDown(
        f"The search does not answer now ({type(error).__name__}): it is starting, has too much to "
        f"do, or is not there. Try again; `serve status` tells of the application {APPLICATION}."
    )
