"""What a model of the cluster is to whoever calls it: one server class, whatever it computes, and
calls of it, wherever it runs.

Invariant: what goes in and out is OpenAI's JSON; every failure is an AskError, which survives the
way between processes; a call whose task is cancelled frees what it held at once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Protocol


class ModelServer(Protocol):
    """A loaded model in this process. It is made by `Class(settings)`, which loads the model and
    raises an error that says what cannot be loaded, why, and what to do. It computes on the GPU
    where this process was given one (`torch.cuda.is_available()`), else on the CPU. Belongs to the
    loop of its first call."""

    async def answer(self, endpoint: str, body: Mapping[str, Any], seconds: float) -> bytes:
        """The whole answer to the checked `body`, as JSON. `endpoint`: "embeddings" or
        "chat/completions"; `seconds`: after which nobody waits any more.

        Raises an AskError: Refused or ContextOverflow (status 400, with `said`, and `param` and
        `code` where there are any) for what will not be answered, Unavailable (status 503, with
        `retry_after`) where the queue is full, TimedOut.
        """
        ...

    def stream(
        self, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> AsyncGenerator[bytes]:
        """The chunks of a streamed chat completion, the JSON of one event each, without framing and
        without `[DONE]`; the usage is the last where `stream_options.include_usage` asks for it.
        Raises as `answer` does, before the first chunk where it can. Closed by whoever does not
        read it to its end."""
        ...

    def numbers(self) -> Mapping[str, float]:
        """What is measured, by the names of `serve.models.numbers`."""
        ...

    def check_health(self) -> None:
        """Raises where the model will not answer any more: its process is replaced."""
        ...

    async def aclose(self) -> None:
        """Let go of the model."""
        ...


class ModelAnswers(Protocol):
    """The models of one process or cluster, by the names of `models`."""

    async def answer(
        self, model: str, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> bytes:
        """See `ModelServer.answer`. Raises AskError."""
        ...


class ModelCalls(ModelAnswers, Protocol):
    """The same, with answers in parts."""

    def stream(
        self, model: str, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> AsyncGenerator[bytes]:
        """See `ModelServer.stream`; closed by whoever does not read it to its end."""
        ...


class ReadyCalls(ModelCalls, Protocol):
    """The same of models that come and go."""

    async def ready(self, model: str) -> None:
        """Wait until a process has the model loaded; where none has, one begins to. It goes on
        doing so where nobody waits any more. Raises AskError."""
        ...
