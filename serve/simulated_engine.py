"""What becomes of a request: decided at once, from the settings, the state and the time.

Invariant: `decide` does no I/O and never waits; what it returns says everything there is to send,
how, and when. The order of the checks is the provider's: is it up, is the key right, does the
request fit the protocol, the model and the context, is there quota, is there room in the limits;
only then is the request admitted and numbered, and may meet a fault.
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Callable, Sequence

from serve.simulated_answers import Line, compose, has_results, read_lines, records_of
from serve.simulated_embeddings import embedded, prompt_tokens, read_embedding_request
from serve.simulated_faults import FaultPlan
from serve.simulated_limits import Clock, Limits, interpolated
from serve.simulated_protocol import ApiError, ChatRequest, check_request, read_request
from serve.simulated_schema import SchemaError
from serve.simulated_settings import (
    RECORD_FAULTS,
    TEXT_FAULTS,
    TRANSPORT_FAULTS,
    FaultKind,
    Settings,
    Window,
)
from serve.simulated_tools import tool_called
from serve.simulated_verdict import Manner, Verdict
from serve.simulated_writer import Writer

_RESETS: tuple[Manner, ...] = ("reset", "close", "partial")
_SERVER_ERRORS = (500, 502, 503)
_BAD_GATEWAY = (
    b"<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>"
)


class Engine:
    """The simulated provider without its sockets."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._limits = Limits(settings)
        self._plan = FaultPlan(settings.fault_shares, settings.fault_schedule, settings.fault_seed)
        self._resets = 0
        self._writer = Writer(settings, self._plan)

    @property
    def admitted(self) -> int:
        """Requests admitted so far."""
        return self._plan.number

    def pending_faults(self) -> int:
        """Scheduled faults that have not happened yet."""
        return self._plan.pending()

    def decide(self, authorization: str | None, body: bytes, now: float) -> Verdict:
        """What becomes of a request that arrives at `now` (simulated seconds)."""
        request = _try_to_read(body)
        lines = read_lines(request.text_of("user")) if isinstance(request, ChatRequest) else ()

        def answered() -> Verdict:
            if isinstance(request, ApiError):
                raise request
            return self._answer(request, lines, now)

        verdict = self._decided(authorization, now, answered)
        verdict.records = tuple(line.key for line in records_of(lines))
        return verdict

    def decide_embeddings(self, authorization: str | None, body: bytes, now: float) -> Verdict:
        """The same of a request for embeddings."""
        return self._decided(authorization, now, lambda: self._embed(body, now))

    def _decided(
        self, authorization: str | None, now: float, answered: Callable[[], Verdict]
    ) -> Verdict:
        try:
            if _within(now, self._settings.outages):
                verdict = self._outage()
            else:
                self.check_key(authorization)
                verdict = answered()
        except ApiError as error:
            verdict = self._error(error)
        verdict.headers |= self._limits.headers(now, self._clock)
        return verdict

    def _embed(self, body: bytes, now: float) -> Verdict:
        request = read_embedding_request(body)
        self.check_model(request.model)
        self._check_quota(now)
        tokens = prompt_tokens(request)
        self._limits.admit(tokens, now)
        fault = self._plan.draw(TRANSPORT_FAULTS)
        verdict = self._spoilt(fault) or embedded(request)
        return self._struck(verdict, fault, tokens, tokens)

    def settle(self, verdict: Verdict, now: float) -> None:
        """Give back the tokens that a decided request did not use."""
        used = 0
        if verdict.status == 200:
            used = verdict.prompt_tokens + verdict.completion_tokens
        self._limits.give_back(verdict.reserved - used, now)

    def check_key(self, authorization: str | None) -> None:
        """Raises ApiError (401) where a key is demanded and not the right one given."""
        if self._settings.api_key is None:
            return
        expected = self._settings.api_key.get_secret_value().encode()
        scheme, _, given = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not given:
            raise ApiError(401, "No API key was given; send it as 'Authorization: Bearer KEY'.")
        if not hmac.compare_digest(given.strip().encode(), expected):
            raise ApiError(401, "The API key given is not correct.", code="invalid_api_key")

    def check_model(self, model: str) -> None:
        """Raises ApiError (404) where the model is not served."""
        if model not in self._settings.models:
            raise ApiError(
                404, f"The model '{model}' does not exist.", code="model_not_found", param="model"
            )

    def _outage(self) -> Verdict:
        if self._settings.outage_as == "reset":
            return Verdict(None, manner="reset", fault="outage")
        verdict = self._error(
            ApiError(503, "The service is not available at the moment.", kind="server_error")
        )
        verdict.fault = "outage"
        return verdict

    def _error(self, error: ApiError) -> Verdict:
        headers = {}
        if error.retry_after is not None and self._settings.retry_after:
            wait = self._clock.real(error.retry_after)
            # HTTP knows whole seconds only; at other scales they would be far too coarse.
            exact = f"{wait:.3f}" if self._settings.time_scale != 1 else str(math.ceil(wait))
            headers = {"Retry-After": exact, "retry-after-ms": str(math.ceil(wait * 1000))}
        return Verdict(error.status, error.body(), headers=headers)

    def _answer(self, request: ChatRequest, lines: tuple[Line, ...], now: float) -> Verdict:
        prompt = request.prompt_tokens()
        check_request(request, self._settings.unsupported)
        self.check_model(request.model)
        room = self._room(request, prompt)
        self._check_quota(now)
        try:
            call = tool_called(request)
            answer = "" if call else compose(request, lines, self._settings)
        except SchemaError as error:
            raise ApiError(
                400, f"Invalid schema for response_format: {error}.", param="response_format"
            ) from error
        reserved = prompt + (request.max_output or 0)
        self._limits.admit(reserved, now)
        poisoned = self._is_poisoned(request, lines)
        suits: frozenset[FaultKind] = TRANSPORT_FAULTS
        if not poisoned and isinstance(answer, dict):
            suits |= TEXT_FAULTS | (RECORD_FAULTS if has_results(answer) else frozenset())
        fault = self._plan.draw(suits)
        spoilt = self._spoilt(fault)
        if spoilt is not None:
            verdict = spoilt
        elif poisoned and fault is None:
            verdict = self._refuse(request, prompt)
            verdict.fault = "poison"
        elif call is not None:
            verdict = self._writer.call(request, *call, prompt)
        else:
            verdict = self._writer.write(request, lines, answer, fault, prompt, room)
        return self._struck(verdict, fault, prompt, reserved)

    def _spoilt(self, fault: FaultKind | None) -> Verdict | None:
        """What is sent in place of any answer."""
        return self._fail(fault) if fault in ("rate_limit", "server_error") else None

    def _struck(
        self, verdict: Verdict, fault: FaultKind | None, prompt: int, reserved: int
    ) -> Verdict:
        """What the fault, if any, makes of the sending, and when it is sent."""
        if fault in ("reset", "hang"):
            verdict.manner = "hang" if fault == "hang" else self._next_reset()
            verdict.status, verdict.good, verdict.finish_reason = None, (), None
        verdict.fault = fault or verdict.fault
        verdict.reserved = reserved
        if fault != "rate_limit":
            verdict.delay += interpolated(self._settings.latency, prompt)
        return verdict

    def _next_reset(self) -> Manner:
        """Connections are lost in each of the ways by turns."""
        self._resets += 1
        return _RESETS[(self._resets - 1) % len(_RESETS)]

    def _check_quota(self, now: float) -> None:
        """Raises ApiError (429) where the account is empty, for now or for good."""
        settings = self._settings
        empty = settings.quota_after is not None and self.admitted >= settings.quota_after
        if empty or _within(now, settings.quota_windows):
            raise ApiError(
                429,
                "You exceeded your current quota: check your plan and billing.",
                kind="insufficient_quota",
                code="insufficient_quota",
            )

    def _room(self, request: ChatRequest, prompt: int) -> int:
        """Tokens the answer may have. Raises ApiError (400) where the context is too small."""
        context, wanted = self._settings.context, request.max_output
        if prompt + (wanted or 1) > context:
            raise ApiError(
                400,
                f"The maximum context length of this model is {context} tokens, but {prompt}"
                f" tokens of messages and {wanted or 1} of completion were requested.",
                code="context_length_exceeded",
                param="messages",
            )
        return wanted or context - prompt

    def _is_poisoned(self, request: ChatRequest, lines: Sequence[Line]) -> bool:
        texts = [request.text_of("user"), *(line.text or "" for line in lines)]
        return any(phrase in text for phrase in self._settings.poison for text in texts)

    def _fail(self, fault: FaultKind) -> Verdict:
        if fault == "rate_limit":
            return self._error(
                ApiError(
                    429,
                    "The engine is overloaded, slow down.",
                    kind="requests",
                    code="rate_limit_exceeded",
                    retry_after=self._settings.fault_retry_after,
                )
            )
        status = self._plan.random().choice(_SERVER_ERRORS)
        if status == 502:
            return Verdict(status, _BAD_GATEWAY, content_type="text/html")
        return self._error(
            ApiError(status, "The server had an error, please try again.", kind="server_error")
        )

    def _refuse(self, request: ChatRequest, prompt: int) -> Verdict:
        if self._settings.poison_as == "400":
            return self._error(
                ApiError(
                    400,
                    "The request was rejected because it may violate the content policy.",
                    code="content_policy_violation",
                )
            )
        return self._writer.refuse(request, prompt)


def _try_to_read(body: bytes) -> ChatRequest | ApiError:
    """The request, or what is wrong with it: that matters only after other checks."""
    try:
        return read_request(body)
    except ApiError as error:
        return error


def _within(now: float, windows: Sequence[Window]) -> bool:
    return any(start <= now < end for start, end in windows)
