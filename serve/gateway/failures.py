"""What went wrong at a provider -> what the client is told. Pure.

Invariant: every AskError becomes one GatewayError here and nowhere else; a client reads the
provider's name and words, never its URL or key.
"""

from __future__ import annotations

from serve.ask.errors import (
    AskError,
    BreakerOpen,
    ContextOverflow,
    Misconfigured,
    QuotaExhausted,
    RateLimited,
    Refused,
    TimedOut,
    Unavailable,
    Unsupported,
)
from serve.gateway.contract import Target
from serve.gateway.errors import (
    BadRequest,
    GatewayError,
    Overloaded,
    ProviderDown,
    ProviderFailed,
    ProviderQuota,
    ProviderRateLimited,
    ProviderTimedOut,
)
from serve.gateway.gate import LimiterLost, NoTime
from serve.models.errors import ModelBusy, ModelNotLoaded

ABOUT_THE_REQUEST = (Refused, Unsupported, ContextOverflow)
"""Errors that another provider would answer with too: nobody else is asked."""

DOWN_SECONDS = 5.0
"""After which a provider that nobody reached may be tried again: as long as a breaker stays open at
first."""


def gateway_error(error: AskError, target: Target) -> GatewayError:
    """What a client is told of `error`, which came of asking `target`."""
    said = f": {error.said}" if error.said else ""
    if isinstance(error, ABOUT_THE_REQUEST) and (error.status or 0) >= 400:
        code = "context_length_exceeded" if isinstance(error, ContextOverflow) else error.code
        told = error.said or f"{target} refused this request with {error.status} and no reason"
        return BadRequest(told, param=error.param, code=code)
    if isinstance(error, NoTime):
        return Overloaded(
            f"too little of the request's time was left to ask {target}: send it again",
            retry_after=1.0,
        )
    if isinstance(error, LimiterLost):
        return ProviderDown(
            f"the limiter of {target} cannot be reached: try again later",
            retry_after=DOWN_SECONDS,
        )
    if isinstance(error, ModelBusy):
        return Overloaded(
            f"as many requests wait for {target} as may{said}",
            code="model_overloaded",
            retry_after=error.retry_after,
        )
    if isinstance(error, ModelNotLoaded):
        return ProviderDown(
            f"{target} cannot answer{said}",
            retry_after=error.retry_after or DOWN_SECONDS,
        )
    if isinstance(error, RateLimited):
        wait = error.retry_after
        return ProviderRateLimited(f"{target} takes no more requests now{said}", retry_after=wait)
    if isinstance(error, QuotaExhausted):
        return ProviderQuota(f"the account for {target} has nothing left{said}")
    if isinstance(error, BreakerOpen):
        return ProviderDown(
            f"{target} is failing and is not asked at the moment", retry_after=error.retry_after
        )
    if isinstance(error, TimedOut):
        return ProviderTimedOut(f"{target} gave no complete answer in time")
    if isinstance(error, Unavailable) and error.status is None:
        return ProviderDown(
            f"{target} did not answer, or the connection to it was lost",
            retry_after=DOWN_SECONDS,
        )
    answered = f"{target} answered {error.status}" if error.status else f"{target} failed"
    if isinstance(error, Misconfigured):
        what = "key" if error.status in (401, 403) else "URL or model name"
        return ProviderFailed(f"{answered}: the gateway's {what} for it is wrong")
    if isinstance(error, Unavailable):
        if error.status == 200:
            return ProviderFailed(f"{target} answered with something that is no whole answer")
        return ProviderFailed(f"{answered}{said}", retry_after=error.retry_after)
    return ProviderFailed(f"{target} failed{said}")
