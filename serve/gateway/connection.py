"""The connections to one provider: kept alive, and shared by all requests to it.

Invariant: no exception but an AskError leaves here (cancellation apart), none holds the key, and
nothing of an answer is held beyond MOST_ANSWER bytes; who waits for one learns that its connection
is gone.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from serve.ask.attempt import CONNECT_SECONDS, KEEP_ALIVE_SECONDS, proxy_for
from serve.ask.errors import Unavailable
from serve.ask.settings import Provider, api_key
from serve.ask.wire import Wire
from serve.gateway.contract import Endpoint

MOST_ANSWER: Final = 128 * 2**20
"""Bytes of one whole answer: 2,048 vectors of 3,072 numbers in decimal are 80 MiB."""
DIRECT_BYTES: Final = 2**20
"""A longer body is sent in pieces, so that others have their turn in between."""
ENDPOINTS: Final[tuple[Endpoint, ...]] = ("chat/completions", "embeddings")

Response = aiohttp.ClientResponse


class _Bytes(aiohttp.BytesPayload):
    """A body that tells when it is written."""

    on_write: Callable[[], None]

    async def write_with_length(self, writer: Any, content_length: int | None) -> None:
        self.on_write()
        await super().write_with_length(writer, content_length)


class _Pieces(aiohttp.BytesIOPayload):
    """The same of one that is sent in pieces."""

    on_write: Callable[[], None]

    async def write_with_length(self, writer: Any, content_length: int | None) -> None:
        self.on_write()
        await super().write_with_length(writer, content_length)


def _payload(body: bytes, on_write: Callable[[], None]) -> _Bytes | _Pieces:
    made = _Bytes(body) if len(body) <= DIRECT_BYTES else _Pieces(io.BytesIO(body))
    made.on_write = on_write
    return made


def _lose(content: aiohttp.StreamReader) -> None:
    if not content.is_eof() and content.exception() is None:
        content.set_exception(aiohttp.ClientPayloadError("the connection ended in the middle"))


class Connection:
    """A pool of connections to one provider. Belongs to the loop of its first request."""

    def __init__(self, provider: Provider) -> None:
        """Raises Misconfigured where the environment lacks the provider's key."""
        key = api_key(provider)
        self.wire = Wire(provider.base_url, key)
        self._urls = {each: URL(f"{provider.base_url}/{each}") for each in ENDPOINTS}
        # Compressed answers would cost more than they save, and a small one may fill the memory.
        self._headers = {
            "user-agent": "fupan",
            "accept-encoding": "identity",
            "content-type": "application/json",
        } | ({"authorization": f"Bearer {key}"} if key else {})
        self._proxy = proxy_for(provider.base_url)
        self._session: aiohttp.ClientSession | None = None
        self._answers: dict[ResponseHandler, aiohttp.StreamReader] = {}

    async def post(self, endpoint: Endpoint, body: bytes, on_write: Callable[[], None]) -> Response:
        """The answer to `body` as soon as its headers are there: the caller reads it to its end,
        or closes it. `on_write` is called before the first byte goes out. Raises Unavailable."""
        session = self._session or self._open()
        try:
            response = await session.post(
                self._urls[endpoint], data=_payload(body, on_write), allow_redirects=False
            )
        except (aiohttp.ClientError, OSError) as error:
            raise self.wire.silence(error) from error
        self._watch(response)
        return response

    async def read(self, response: Response) -> bytes:
        """The whole of an answer. Raises Unavailable where it is cut off, or too long."""
        length = response.content_length
        parts: list[bytes] = []
        taken = 0
        try:
            if length is not None and length <= MOST_ANSWER:
                return await response.read()
            while taken <= MOST_ANSWER and (part := await response.content.readany()):
                parts.append(part)
                taken += len(part)
        except (aiohttp.ClientError, OSError) as error:
            raise self.wire.silence(error) from error
        if taken > MOST_ANSWER or (length or 0) > MOST_ANSWER:
            response.close()
            raise Unavailable(
                f"{self.wire.base_url} sent an answer of more than {MOST_ANSWER} bytes",
                status=response.status,
            )
        return b"".join(parts)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def _watch(self, response: Response) -> None:
        """Have whoever reads the answer told when its connection ends: after a chunk that is none
        aiohttp closes the connection and leaves the reader waiting."""
        connection = response.connection
        protocol = None if connection is None else connection.protocol
        if protocol is None:
            return  # it is all there
        if protocol not in self._answers:
            closed = protocol.closed
            if closed is None:
                _lose(response.content)
                return
            closed.add_done_callback(partial(self._closed, protocol))
        self._answers[protocol] = response.content

    def _closed(self, protocol: ResponseHandler, closed: asyncio.Future[None]) -> None:
        closed.exception()  # lest it be logged as never retrieved
        _lose(self._answers.pop(protocol))

    def _open(self) -> aiohttp.ClientSession:
        # No limit of its own: who has a permit need not wait for a connection as well.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS)
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            proxy=self._proxy,
            trust_env=False,
        )
        return self._session
