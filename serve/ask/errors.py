"""Errors of asking a model.

    AskError                      what, where (host and model, never the key), what to do now
     +- Misconfigured              401, 403, 404, a missing key: nothing will work until changed
     +- QuotaExhausted             402, insufficient_quota, Retry-After over ten minutes: stop
     +- RateLimited                429: wait `retry_after` seconds (None: not told)
     +- Unavailable                5xx, connection lost or refused, garbage instead of a completion
     |   `- TimedOut               no complete answer within the request's timeout
     +- Unsupported                the provider rejects a feature by name (see `capabilities.py`)
     +- ContextOverflow            the request is too long for the model
     +- Refused                    400 or a refusal: this content will not be answered
     +- CapReached                 it may cost more than is left of the money agreed: stop
     +- BreakerOpen                the provider is failing: not asked at all, try in `retry_after`
     `- Stopped                    the asking was ended before this request was on the wire

Invariant: every foreign error (httpx, JSON, sockets) is mapped to one of these in `wire.py` and
nowhere else. All carry plain values and survive pickling between processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from serve.ask.contract import Usage


class AskError(Exception):
    """Base of all errors of asking. `message` is safe to show: it never holds a key.

    `headers` are those of the answer, lower case, where there was one. `usage`: of an answer that
    is none but was counted. `sent`: False where surely nobody was reached. `said`, `code`,
    `param`: the provider's own words, where it gave any.
    """

    headers: Mapping[str, str] = MappingProxyType({})
    usage: Usage | None = None
    sent: bool = True
    said: str = ""
    code: str | None = None
    param: str | None = None

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message, status)
        self.message = message
        self.status = status

    def __str__(self) -> str:
        return self.message


class Misconfigured(AskError):
    """URL, model name or key is wrong. Not retried; the job ends with exit 2."""


class QuotaExhausted(AskError):
    """The account has nothing left for a long while. Not retried; the job stops, resumable."""


class RateLimited(AskError):
    """Too many requests or tokens: the same request is good again after `retry_after` seconds."""

    def __init__(
        self, message: str, status: int | None = 429, retry_after: float | None = None
    ) -> None:
        super().__init__(message, status)
        self.args = (message, status, retry_after)
        self.retry_after = retry_after


class Unavailable(AskError):
    """The provider failed: the same request may succeed later. `retry_after`: seconds, if told."""

    def __init__(
        self, message: str, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, status)
        self.args = (message, status, retry_after)
        self.retry_after = retry_after


class TimedOut(Unavailable):
    """No complete answer in time."""


class Unsupported(AskError):
    """The provider rejects `feature` (a name of `capabilities.py`) whatever the content."""

    def __init__(self, message: str, status: int | None = 400, feature: str = "") -> None:
        super().__init__(message, status)
        self.args = (message, status, feature)
        self.feature = feature


class ContextOverflow(AskError):
    """Input and output together do not fit the model's context."""


class Refused(AskError):
    """The provider will not answer this content."""


class Stopped(AskError):
    """The asking was ended while this request waited."""


class CapReached(AskError):
    """Not asked: what it may cost at worst does not fit under the cap. No call of the model does
    any more; the job, resumable with a higher cap, stops where it has no cheaper one to ask."""


class BreakerOpen(AskError):
    """Not asked: the breaker is open for another `retry_after` seconds."""

    def __init__(self, message: str, status: int | None = 503, retry_after: float = 0.0) -> None:
        super().__init__(message, status)
        self.args = (message, status, retry_after)
        self.retry_after = retry_after
