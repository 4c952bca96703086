"""What goes wrong at the gateway, and what each is on the wire.

GatewayError                          status  type                    code
 +- BadRequest                        400     invalid_request_error   (given)
 +- NotAuthorized                     401     authentication_error    invalid_api_key
 +- Forbidden                         403     permission_error        model_not_allowed
 +- UnknownModel                      404     invalid_request_error   model_not_found
 +- UnknownReport                     404     invalid_request_error   report_not_found
 +- UnknownUrl                        404     invalid_request_error   unknown_url
 +- WrongMethod                       405     invalid_request_error   method_not_supported
 +- AnswerNotKept                     409     invalid_request_error   idempotency_answer_not_kept
 +- OutOfTime                         408     server_error            gateway_timed_out
 +- BodyTooLarge                      413     invalid_request_error   body_too_large
 +- KeyRateLimited                    429     rate_limit_error        key_rate_limited
 +- KeySpent                          429     insufficient_quota      key_spent
 +- ProviderRateLimited               429     rate_limit_error        provider_rate_limited
 +- ProviderQuota                     429     insufficient_quota      provider_quota_exhausted
 +- Overloaded                        503     server_error            gateway_overloaded
 |   `- KeyUncounted                  503     server_error            key_account_unavailable
 +- SearchUnavailable                 503     server_error            search_unavailable
 +- ProviderDown                      503     server_error            provider_unavailable
 +- ProviderFailed                    502     server_error            provider_failed
 +- ProviderTimedOut                  504     server_error            provider_timed_out
 +- Draining                          503     server_error            gateway_draining
 `- ReplicaLost                       500     server_error            gateway_replica_lost

Invariant: every failure that a client sees is one of these, in OpenAI's error form; `message` never
holds a key, and `code` says whose limit it was.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import orjson


class GatewayError(Exception):
    """Base. `message` is shown to the client; `param`: the field it is about; `retry_after`:
    seconds after which the same request may succeed."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    code: str | None = "internal_error"

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after = retry_after
        if code is not None:
            self.code = code

    def body(self) -> dict[str, Any]:
        """OpenAI's error form."""
        return {
            "error": {
                "message": self.message,
                "type": self.type,
                "param": self.param,
                "code": self.code,
            }
        }

    def json(self) -> bytes:
        """`body` as it is sent."""
        return orjson.dumps(self.body())

    def headers(self) -> dict[str, str]:
        """`Retry-After` in whole seconds, at least 1, where it is known."""
        if self.retry_after is None:
            return {}
        return {"retry-after": str(max(1, math.ceil(self.retry_after)))}


class BadRequest(GatewayError):
    """The request makes no sense as it stands, or the provider refuses it (its own code)."""

    status = 400
    type = "invalid_request_error"
    code = None


class NotAuthorized(GatewayError):
    """No API key, or one that nobody was given."""

    status = 401
    type = "authentication_error"
    code = "invalid_api_key"


class Forbidden(GatewayError):
    """The key may not ask this model."""

    status = 403
    type = "permission_error"
    code = "model_not_allowed"


class UnknownModel(GatewayError):
    """No provider has a model of this name."""

    status = 404
    type = "invalid_request_error"
    code = "model_not_found"


class UnknownReport(GatewayError):
    """The caller sees no such run, or the run has no such file."""

    status = 404
    type = "invalid_request_error"
    code = "report_not_found"


class UnknownUrl(GatewayError):
    """Nothing is at this path."""

    status = 404
    type = "invalid_request_error"
    code = "unknown_url"


class WrongMethod(GatewayError):
    """The path is asked by another method."""

    status = 405
    type = "invalid_request_error"
    code = "method_not_supported"


class AnswerNotKept(GatewayError):
    """The request was answered before, and its answer was too large to be kept."""

    status = 409
    type = "invalid_request_error"
    code = "idempotency_answer_not_kept"


class OutOfTime(GatewayError):
    """The time is over that the caller, or the ingress, gives a request."""

    status = 408
    code = "gateway_timed_out"


class BodyTooLarge(GatewayError):
    """The body is larger than the gateway takes."""

    status = 413
    type = "invalid_request_error"
    code = "body_too_large"


class KeyRateLimited(GatewayError):
    """The key's own rate is used up."""

    status = 429
    type = "rate_limit_error"
    code = "key_rate_limited"


class KeySpent(GatewayError):
    """The key's own money is used up."""

    status = 429
    type = "insufficient_quota"
    code = "key_spent"


class ProviderRateLimited(GatewayError):
    """The provider's rate is used up for longer than the request may take."""

    status = 429
    type = "rate_limit_error"
    code = "provider_rate_limited"


class ProviderQuota(GatewayError):
    """The account at the provider has nothing left."""

    status = 429
    type = "insufficient_quota"
    code = "provider_quota_exhausted"


class Overloaded(GatewayError):
    """More requests wait than the gateway takes."""

    status = 503
    code = "gateway_overloaded"


class KeyUncounted(Overloaded):
    """Nobody can count what the key uses."""

    code = "key_account_unavailable"


class Draining(GatewayError):
    """This replica is about to end."""

    status = 503
    code = "gateway_draining"


class SearchUnavailable(GatewayError):
    """The search does not answer at the moment."""

    status = 503
    code = "search_unavailable"


class ProviderDown(GatewayError):
    """The provider is failing and is not asked at the moment, or nobody answers at its URL."""

    status = 503
    code = "provider_unavailable"


class ProviderFailed(GatewayError):
    """The provider answered with an error of its own, or with what is no answer."""

    status = 502
    code = "provider_failed"


class ProviderTimedOut(GatewayError):
    """The provider gave no complete answer in time."""

    status = 504
    code = "provider_timed_out"


class ReplicaLost(GatewayError):
    """The process that was answering ended."""

    status = 500
    code = "gateway_replica_lost"
