"""The connections to one provider: kept alive, and shared by all requests to it.

Invariant: no exception but an AskError leaves here (cancellation apart), none holds the key, and
nothing of an answer is held beyond MOST_ANSWER bytes.
"""

from __future__ import annotations

import io
from typing import Final

import aiohttp
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

    async def post(self, endpoint: Endpoint, body: bytes) -> Response:
        """The answer to `body` as soon as its headers are there: the caller reads it to its end,
        or closes it. Raises Unavailable."""
        session = self._session or self._open()
        try:
            return await session.post(
                self._urls[endpoint],
                data=body if len(body) <= DIRECT_BYTES else io.BytesIO(body),
                allow_redirects=False,
            )
        except (aiohttp.ClientError, OSError) as error:
            raise self.wire.silence(error) from error

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
