"""What is sent to a provider for a call, and how much of its limits that may take. No I/O.

Invariant: the body is made of the call here and nowhere else; a field that we add and the provider
refuses by name is left out from then on, one that the client sends is never touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from serve.ask.capabilities import Capabilities
from serve.ask.errors import Unsupported
from serve.ask.settings import Provider
from serve.gateway.contract import Call

FIRST_GUESS: Final = 300.0
"""Output tokens that are reserved for a request that names no limit, until answers have come."""
GUESS_WEIGHT: Final = 0.05
"""Of each answer in the mean that is reserved from then on."""
_ANYTHING: Final = Capabilities()


class Outgoing:
    """Makes the bodies for one provider, and remembers what its models do not take."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._capabilities: dict[str, Capabilities] = {}
        self._no_usage: set[str] = set()
        self._output: dict[str, float] = {}

    def body(self, call: Call, model: str) -> dict[str, Any]:
        """What is sent for `call`. What the client says itself goes before `extra_body`."""
        if call.endpoint == "embeddings":
            return {**call.body, "model": model}
        body = {**self._provider.extra_body, **call.body, "model": model}
        if call.task is not None and not _limits_output(body):
            limit = self._capabilities.get(model, _ANYTHING).output_limit
            if limit != "none":
                body[limit] = call.task.max_tokens
        if call.stream and model not in self._no_usage:
            given = body.get("stream_options")
            options = given if isinstance(given, Mapping) else {}
            body["stream_options"] = {**options, "include_usage": True}
        return body

    def step_down(self, call: Call, model: str, error: Unsupported) -> bool:
        """Leave out from now on what we added and the provider refuses; False: it was the client
        who asked for it, or `extra_body`."""
        if error.feature in call.body or error.feature in self._provider.extra_body:
            return False
        if error.feature == "stream_options":
            self._no_usage.add(model)
        elif error.feature in ("max_tokens", "max_completion_tokens"):
            known = self._capabilities.get(model, _ANYTHING)
            if known.output_limit == error.feature:
                self._capabilities[model] = known.without(error.feature)
        else:
            return False
        return True

    def tokens(self, call: Call, model: str) -> int:
        """Tokens to reserve for `call`, input and output together."""
        if call.endpoint == "embeddings":
            return call.estimate
        most = call.body.get("max_completion_tokens") or call.body.get("max_tokens")
        if not isinstance(most, int):
            most = call.task.max_tokens if call.task else self._output.get(model, FIRST_GUESS)
        choices = call.body.get("n")
        expected = int(most) * (choices if isinstance(choices, int) else 1)
        # Whatever a client writes there, the others have their turn: what was used is settled.
        return call.estimate + max(1, min(expected, self._provider.context))

    def learn(self, model: str, tokens_out: int) -> None:
        """An answer had so many tokens."""
        mean = self._output.get(model, FIRST_GUESS)
        self._output[model] = mean + GUESS_WEIGHT * (tokens_out - mean)


def _limits_output(body: Mapping[str, Any]) -> bool:
    return body.get("max_tokens") is not None or body.get("max_completion_tokens") is not None
