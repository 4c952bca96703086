"""What answers of a provider mean that are no completion: one error of `serve.ask.errors` each.
Pure.

Invariant: foreign statuses and lost connections are understood here and nowhere else, for the job
and the gateway alike; no text of an error holds the key.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, NamedTuple

import aiohttp
import orjson

from serve.ask.capabilities import rejected_feature
from serve.ask.contract import Usage
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

LONG_WAIT_SECONDS = 600.0
"""A provider that asks for a longer wait has no quota left for this run (DESIGN 4)."""
SHOWN_CHARACTERS = 500
"""Of a provider's error text, so that an HTML error page does not fill the log."""

_FAILED = re.compile(r"[45][0-9][0-9]")


class Wire:
    """The errors of one provider, in words that name its URL and never its key."""

    def __init__(self, base_url: str, key: str | None) -> None:
        self.base_url = base_url
        self._key = key

    def refusal(
        self, status: int, headers: Mapping[str, str], content: bytes, body: Mapping[str, Any]
    ) -> AskError:
        """What an error answer to `body` means. The one place where foreign statuses are
        understood. `headers`: names in lower case, or found whatever their case."""
        given = _given(content)
        # Some gateways send the provider's error with a status of 200.
        if status == 200 and _FAILED.fullmatch(given.code):
            status = int(given.code)
        said = self.safe(given.message or content.decode("utf-8", "replace") or _phrase(status))
        where = f"{self.base_url} ({body['model']}) answered {status}: {said}"
        wait = retry_after_seconds(headers, time.time())
        error = self._error(status, where, wait, f"{given.code} {said}".lower())
        if given.code == "insufficient_quota":
            error = QuotaExhausted(where, status)
        if type(error) is Refused and (feature := rejected_feature(body, said, given.param)):
            error = Unsupported(where, status, feature)
        error.said, error.code, error.param = said, given.code or None, given.param
        return error

    def _error(self, status: int, where: str, wait: float | None, lowered: str) -> AskError:
        if status == 402:
            return QuotaExhausted(where, status)
        passing = status in (408, 429) or status >= 500
        if passing and wait is not None and wait > LONG_WAIT_SECONDS:
            return QuotaExhausted(f"{where} (told to wait {wait:.0f} s)", status)
        if status == 429:
            return RateLimited(where, status, wait)
        if passing:
            return Unavailable(where, status, wait)
        if status in (401, 403, 404, 405) or 300 <= status < 400:
            lacks = status == 404 and not self.base_url.rstrip("/").endswith("/v1")
            return Misconfigured(where + (" (does the URL lack /v1?)" if lacks else ""), status)
        if status == 413 or "context_length" in lowered or "context length" in lowered:
            return ContextOverflow(where, status)
        return Refused(where, status)

    def silence(self, error: BaseException) -> Unavailable:
        """What it means that the connection gave no answer, or was lost in the middle of one."""
        if isinstance(error, TimeoutError):
            late = TimedOut(f"{self.base_url} could not be reached in time")
            late.sent = not isinstance(error, aiohttp.ConnectionTimeoutError)
            return late
        reason = self.safe(str(error) or type(error).__name__)
        refused = Unavailable(f"{self.base_url} did not answer: {reason}")
        refused.sent = not isinstance(error, aiohttp.ClientConnectorError)
        return refused

    def garbage(self, content: bytes, expected: str = "chat completion") -> Unavailable:
        """What it means that a 200 holds something else than what was `expected`."""
        return Unavailable(
            f"{self.base_url} answered 200 with something that is no {expected}: "
            f"{self.safe(content.decode('utf-8', 'replace'))}",
            status=200,
        )

    def safe(self, text: str) -> str:
        """`text`, shortened and without the key: some providers echo it in a 401."""
        if self._key:
            text = text.replace(self._key, "<key>")
        return " ".join(text[:SHOWN_CHARACTERS].split())


class _Given(NamedTuple):
    """What an OpenAI-shaped error body says; blanks where it is none. `code`: or its type."""

    message: str = ""
    code: str = ""
    param: str | None = None


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _given(content: bytes) -> _Given:
    try:
        error = orjson.loads(content)["error"]
        if isinstance(error, str):
            return _Given(error)
        param = error.get("param")
        return _Given(
            str(error.get("message") or ""),
            str(error.get("code") or error.get("type") or ""),
            param if isinstance(param, str) else None,
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return _Given()


def usage_of(given: object) -> Usage:
    """The tokens that a `usage` object counts; 0 for each that it does not."""
    if not isinstance(given, Mapping):
        return Usage()
    details = given.get("prompt_tokens_details")
    return Usage(
        tokens_in=_number(given.get("prompt_tokens")),
        tokens_out=_number(given.get("completion_tokens")),
        cached=_number(details.get("cached_tokens")) if isinstance(details, Mapping) else 0,
    )


def _number(value: object) -> int:
    """A count of tokens; 0 for what is none."""
    return int(value) if isinstance(value, int | float) and value > 0 else 0


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
