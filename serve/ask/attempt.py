"""One attempt: a request body over HTTP to a reply, or one error of `serve.ask.errors`.

Invariant: no other exception leaves `complete` (cancellation apart), no error text holds the key,
and nothing here retries: retries have one owner, `ask.py`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx
import orjson
from httpx_aiohttp import AiohttpTransport

from serve.ask.capabilities import rejected_feature
from serve.ask.contract import Reply, Usage
from serve.ask.errors import (
    AskError,
    ContextOverflow,
    Misconfigured,
    QuotaExhausted,
    RateLimited,
    Refused,
    TimedOut,
    Unavailable,
    Unsupported,
)

CONNECT_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 3.0
"""Below the 5 s after which common servers close an idle connection: a request sent into a closing
one would look like a failure of the provider."""
LONG_WAIT_SECONDS = 600.0
"""A provider that asks for a longer wait has no quota left for this run (DESIGN 4)."""
SHOWN_CHARACTERS = 500
"""Of a provider's error text, so that an HTML error page does not fill the log."""


class Attempt:
    """Sends bodies to one provider over one pool of connections.

    `headers` of the last answer are handed out with it: the limiter reads the x-ratelimit ones.
    """

    def __init__(self, base_url: str, key: str | None, max_connections: int = 100) -> None:
        self._url = f"{base_url}/chat/completions"
        self._base_url = base_url
        self._key = key
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
            raise self._no_answer(error) from error
        seconds = time.monotonic() - started
        headers = {name.lower(): value for name, value in response.headers.items()}
        try:
            if response.status_code != 200:
                raise self._error(response, body)
            return self._reply(response, body, seconds), headers
        except AskError as error:
            error.headers = headers
            raise

    def _no_answer(self, error: httpx.HTTPError) -> Unavailable:
        # The transport calls every lost or refused connection a ConnectTimeout.
        cause = error.__cause__
        if isinstance(cause, TimeoutError):
            late = TimedOut(f"{self._base_url} could not be reached in time")
            late.sent = not isinstance(cause, aiohttp.ConnectionTimeoutError)
            return late
        reason = self._safe(str(error) or type(error).__name__)
        refused = Unavailable(f"{self._base_url} did not answer: {reason}")
        refused.sent = not isinstance(cause, aiohttp.ClientConnectorError)
        return refused

    def _reply(self, response: httpx.Response, body: Mapping[str, Any], seconds: float) -> Reply:
        try:
            data = orjson.loads(response.content)
            if "error" in data and not data.get("choices"):
                raise self._error(response, body)
            choice = data["choices"][0]
            message = choice["message"]
            refusal = message.get("refusal")
            text = _content(message.get("content"))
            finish_reason = str(choice.get("finish_reason") or "stop")
            usage = _usage(data.get("usage") or {})
            model = str(data.get("model") or body["model"])
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise Unavailable(
                f"{self._base_url} answered 200 with something that is no chat completion: "
                f"{self._safe(response.text)}",
                status=200,
            ) from error
        if refusal or finish_reason == "content_filter":
            said = refusal or "the answer was withheld by a content filter"
            refused = Refused(self._safe(str(said)), 200)
            refused.usage = usage
            raise refused
        return Reply(text, finish_reason, usage, model, seconds)

    def _error(self, response: httpx.Response, body: Mapping[str, Any]) -> AskError:
        """What an error answer means. The one place where foreign statuses are understood."""
        message, code, param = _error_fields(response.content)
        # Some gateways send the provider's error with a status of 200.
        nested = int(code) if code.isdigit() and 400 <= int(code) < 600 else None
        status = nested if response.status_code == 200 and nested else response.status_code
        message = self._safe(message or response.text or response.reason_phrase)
        where = f"{self._base_url} ({body['model']}) answered {status}: {message}"
        wait = retry_after_seconds(response.headers, time.time())
        if status == 402 or code == "insufficient_quota":
            return QuotaExhausted(where, status)
        if status == 429:
            if wait is not None and wait > LONG_WAIT_SECONDS:
                return QuotaExhausted(f"{where} (told to wait {wait:.0f} s)", status)
            return RateLimited(where, status, wait)
        if status in (401, 403, 404, 405) or 300 <= status < 400:
            lacks = status == 404 and not self._base_url.rstrip("/").endswith("/v1")
            return Misconfigured(where + (" (does the URL lack /v1?)" if lacks else ""), status)
        if status >= 500 or status == 408:
            if wait is not None and wait > LONG_WAIT_SECONDS:
                return QuotaExhausted(f"{where} (told to wait {wait:.0f} s)", status)
            return Unavailable(where, status, wait)
        lowered = f"{code} {message}".lower()
        if status == 413 or "context_length" in lowered or "context length" in lowered:
            return ContextOverflow(where, status)
        feature = rejected_feature(body, message, param)
        if feature is not None:
            return Unsupported(where, status, feature)
        return Refused(where, status)

    def _safe(self, text: str) -> str:
        """`text`, shortened and without the key: some providers echo it in a 401."""
        if self._key:
            text = text.replace(self._key, "<key>")
        return " ".join(text[:SHOWN_CHARACTERS].split())


def http_client(base_url: str, key: str | None, max_connections: int = 100) -> httpx.AsyncClient:
    """A client for one provider: its key in every request, the proxy that the environment names."""
    headers = {"user-agent": "fupan"} | ({"authorization": f"Bearer {key}"} if key else {})
    limits = httpx.Limits(max_connections=max_connections, keepalive_expiry=KEEP_ALIVE_SECONDS)
    return httpx.AsyncClient(
        transport=AiohttpTransport(limits=limits, proxy=_proxy_for(base_url)),
        headers=headers,
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        trust_env=False,
    )


def _proxy_for(base_url: str) -> httpx.Proxy | None:
    """The proxy that the environment names for this URL, none for this machine itself."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if host in ("localhost", "127.0.0.1", "::1") or proxy_bypass(host):
        return None
    url = getproxies().get(parts.scheme)
    return httpx.Proxy(url) if url else None


def _content(content: object) -> str:
    """The text of a message, also where it comes as a list of parts. Raises TypeError for anything
    else."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") in ("text", None))
    raise TypeError("content that is no text")


def _usage(data: Mapping[str, Any]) -> Usage:
    details = data.get("prompt_tokens_details") or {}
    return Usage(
        tokens_in=_number(data.get("prompt_tokens")),
        tokens_out=_number(data.get("completion_tokens")),
        cached=_number(details.get("cached_tokens")),
    )


def _number(value: object) -> int:
    """A count of tokens; 0 for what is none."""
    return int(value) if isinstance(value, int | float) and value > 0 else 0


def _error_fields(content: bytes) -> tuple[str, str, str | None]:
    """Message, code (or type) and param of an OpenAI-shaped error body; blanks where it is not."""
    try:
        error = orjson.loads(content)["error"]
        if isinstance(error, str):
            return error, "", None
        return (
            str(error.get("message") or ""),
            str(error.get("code") or error.get("type") or ""),
            error.get("param"),
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return "", "", None


def retry_after_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that `Retry-After` (seconds or an HTTP date, RFC 9110) or `retry-after-ms` asks for.

    `now` is the wall clock in seconds since the epoch; None where nothing usable is said.
    """
    milliseconds = headers.get("retry-after-ms")
    value = headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        if value is None:
            return None
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value or "").timestamp() - now)
    except (ValueError, TypeError):
        return None
