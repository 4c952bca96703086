"""One attempt: a request body over HTTP to a reply, or one error of `serve.ask.errors`.

Invariant: no other exception leaves `complete` (cancellation apart), no error text holds the key,
and nothing here retries: retries have one owner, `ask.py`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx
import orjson
from httpx_aiohttp import AiohttpTransport

from serve.ask.contract import Reply
from serve.ask.errors import AskError, Refused, TimedOut
from serve.ask.wire import Wire, usage_of

CONNECT_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 3.0
"""Below the 5 s after which common servers close an idle connection: a request sent into a closing
one would look like a failure of the provider."""


class Attempt:
    """Sends bodies to one provider over one pool of connections.

    `headers` of the last answer are handed out with it: the limiter reads the x-ratelimit ones.
    """

    def __init__(self, base_url: str, key: str | None, max_connections: int = 100) -> None:
        self._url = f"{base_url}/chat/completions"
        self._base_url = base_url
        self._wire = Wire(base_url, key)
        self._client = http_client(base_url, key, max_connections)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def complete(
        self, body: Mapping[str, Any], limit: float
    ) -> tuple[Reply, Mapping[str, str]]:
        """The reply to `body` and the answer's headers (lower case), within `limit` seconds.

        Raises an AskError whose `headers` hold the answer's, where there was one.
        """
        started = time.monotonic()
        try:
            async with asyncio.timeout(limit):
                response = await self._client.post(
                    self._url,
                    content=orjson.dumps(body),
                    headers={"content-type": "application/json"},
                )
        except TimeoutError as error:
            raise TimedOut(f"{self._base_url} gave no answer within {limit:.0f} s") from error
        except httpx.HTTPError as error:
            # The transport calls every lost or refused connection a ConnectTimeout.
            raise self._wire.silence(error.__cause__ or error) from error
        seconds = time.monotonic() - started
        headers = {name.lower(): value for name, value in response.headers.items()}
        try:
            if response.status_code != 200:
                raise self._refusal(response, body)
            return self._reply(response, body, seconds), headers
        except AskError as error:
            error.headers = headers
            raise

    def _reply(self, response: httpx.Response, body: Mapping[str, Any], seconds: float) -> Reply:
        try:
            data = orjson.loads(response.content)
            if "error" in data and not data.get("choices"):
                raise self._refusal(response, body)
            choice = data["choices"][0]
            message = choice["message"]
            refusal = message.get("refusal")
            text = _content(message.get("content"))
            finish_reason = str(choice.get("finish_reason") or "stop")
            usage = usage_of(data.get("usage"))
            model = str(data.get("model") or body["model"])
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise self._wire.garbage(response.content) from error
        if refusal or finish_reason == "content_filter":
            said = refusal or "the answer was withheld by a content filter"
            refused = Refused(self._wire.safe(str(said)), 200)
            refused.usage = usage
            raise refused
        return Reply(text, finish_reason, usage, model, seconds)

    def _refusal(self, response: httpx.Response, body: Mapping[str, Any]) -> AskError:
        return self._wire.refusal(response.status_code, response.headers, response.content, body)


def http_client(base_url: str, key: str | None, max_connections: int = 100) -> httpx.AsyncClient:
    """A client for one provider: its key in every request, the proxy that the environment names."""
    headers = {"user-agent": "fupan"} | ({"authorization": f"Bearer {key}"} if key else {})
    limits = httpx.Limits(max_connections=max_connections, keepalive_expiry=KEEP_ALIVE_SECONDS)
    proxy = proxy_for(base_url)
    return httpx.AsyncClient(
        transport=AiohttpTransport(limits=limits, proxy=httpx.Proxy(proxy) if proxy else None),
        headers=headers,
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        trust_env=False,
    )


def proxy_for(base_url: str) -> str | None:
    """The proxy that the environment names for this URL, none for this machine itself."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if host in ("localhost", "127.0.0.1", "::1") or proxy_bypass(host):
        return None
    return getproxies().get(parts.scheme)


def _content(content: object) -> str:
    """The text of a message, also where it comes as a list of parts. Raises TypeError for anything
    else."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") in ("text", None))
    raise TypeError("content that is no text")
