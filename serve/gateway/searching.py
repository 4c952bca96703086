"""`POST /v1/search` and `GET /v1/reports`: the search behind the gateway's keys and errors.

Invariant: a caller sees the runs of its own tenant and of everybody, by the tenant of its key and
nothing that it sends; a search counts as one request of its key, and as no token.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from decimal import Decimal
from typing import Any, Protocol

import orjson

from serve.ask.errors import Misconfigured
from serve.gateway.admission import Visit
from serve.gateway.charge import Charge
from serve.gateway.client import JSON, Client
from serve.gateway.contract import Whole
from serve.gateway.errors import (
    BadRequest,
    Forbidden,
    GatewayError,
    SearchUnavailable,
    UnknownReport,
)
from serve.gateway.keys import KeyRecord
from serve.gateway.meter import Meter
from serve.search.contract import Piece, Search
from serve.search.errors import (
    AmbiguousReport,
    BadQuery,
    NoSuchReport,
    SearchDown,
    SearchError,
)
from serve.search.reports import PAGE
from serve.search.runs import owners_of
from serve.search.settings import SearchSettings

NAME = "search"
"""By which a key with `models` is let in."""
FREE = Decimal(0)


class Door(Protocol):
    """What the gateway asks of every request."""

    def key(self, client: Client) -> KeyRecord | None:
        """Its key; None where none are set up. Raises NotAuthorized and Forbidden."""
        ...

    async def read(self, client: Client, visit: Visit) -> dict[str, Any]:
        """Its body. Raises BadRequest and others."""
        ...

    def seconds_left(self, client: Client) -> float:
        """Of its time."""
        ...

    def since(self, client: Client) -> float:
        """Seconds since it arrived."""
        ...


class Searching:
    """The search for those whose keys may ask it."""

    def __init__(self, search: Search, door: Door, meter: Meter) -> None:
        self._search = search
        self._door = door
        self._meter = meter

    async def search(self, client: Client, visit: Visit) -> Whole:
        """`POST /v1/search`. Raises GatewayError."""
        key = self._key(client)
        body = await self._door.read(client, visit)
        charge = None
        if key is not None and key.limited:
            worst = None if key.max_spend is None else FREE
            charge = Charge(self._meter, key, client.about, 0, worst)
            await charge.begin()
        failed: BaseException | None = None
        try:
            seconds = self._asking(client)
            found = await self._search.search(_tenant(key), body, seconds)
            self._told(client)
            return Whole(found, client.about)
        except SearchError as error:
            failed = gateway_error(error)
            raise failed from error
        except BaseException as error:
            failed = error
            raise
        finally:
            if charge is not None:
                await charge.end(failed)

    async def reports(self, client: Client) -> None:
        """Send the list of runs. Raises GatewayError."""
        tenant = _tenant(self._key(client))
        try:
            body = await self._search.reports(tenant, self._asking(client))
        except SearchError as error:
            raise gateway_error(error) from error
        self._told(client)
        await client.send(200, body, [JSON])

    async def file(self, client: Client, run: str, name: str | None) -> None:
        """Send the page of a run, or one of its files. Raises GatewayError."""
        tenant, name = _tenant(self._key(client)), name or PAGE
        seconds = self._asking(client)
        try:
            told = orjson.loads(await self._search.file(tenant, run, name, seconds))
            self._told(client)
            pieces = self._pieces(client, tenant, name, told, seconds)
            headers = [(each.encode(), value.encode()) for each, value in told["headers"].items()]
            # Where the first piece cannot be had, that can still be told.
            first = await anext(pieces, b"")
            await client.send_pieces(200, headers, _with(first, pieces), seconds)
        except SearchError as error:
            raise gateway_error(error) from error

    async def _pieces(
        self, client: Client, tenant: str, name: str, told: dict[str, Any], seconds: float
    ) -> AsyncGenerator[bytes]:
        """What is in a file, a piece at a time, of the run that was `told` of: another one may have
        its name by now. `seconds`: for each of them."""
        offset = 0
        while offset < told["size"]:
            wanted = Piece(offset, told["size"] - offset, told["state"])
            piece = await self._search.piece(tenant, told["run"], name, wanted, seconds)
            if not piece:
                raise SearchDown(f"The file {name!r} of this run ended early: ask again.")
            self._told(client)
            yield piece
            offset += len(piece)

    def _asking(self, client: Client) -> float:
        """Note that the search is asked now; the seconds that are left."""
        client.about.attempts, client.about.sent = 1, self._door.since(client)
        return self._door.seconds_left(client)

    def _told(self, client: Client) -> None:
        """Note that what was asked for has come, all or another part of it."""
        client.about.last_byte = self._door.since(client)

    def _key(self, client: Client) -> KeyRecord | None:
        """The key of a client. Raises NotAuthorized and Forbidden."""
        key = self._door.key(client)
        if key is not None and not key.allows(NAME):
            raise Forbidden(
                f"This API key may not search: its `models` do not name {NAME!r}.",
                code="search_not_allowed",
            )
        return key


def gateway_error(error: SearchError) -> GatewayError:
    """What a client is told of an error of the search."""
    if isinstance(error, BadQuery):
        return BadRequest(error.message, param=error.param, code="invalid_query")
    if isinstance(error, NoSuchReport):
        return UnknownReport(error.message)
    if isinstance(error, AmbiguousReport):
        return BadRequest(error.message, param=error.param, code="report_ambiguous")
    return SearchUnavailable(error.message, retry_after=2)


def check_tenants(search: SearchSettings, open_: bool) -> None:
    """Raise Misconfigured where two entries do not agree whose a folder of runs is, or where keys
    are set up (`open_`: they are not) and one does not say it: it would be everybody's by mistake.
    """
    try:
        owners_of(search.runs)
    except ValueError as error:
        raise Misconfigured(str(error)) from error
    for number, entry in enumerate(search.runs):
        if entry.tenant is None and not open_:
            raise Misconfigured(
                f"search.runs[{number}] ({entry.path}) does not say whose it is, and API keys are "
                "set up: write tenant: NAME, as the keys have it, or tenant: '*' for all of them"
            )


async def _with(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    if first:
        yield first
    async for piece in rest:
        yield piece


def _tenant(key: KeyRecord | None) -> str:
    return "" if key is None else key.tenant
