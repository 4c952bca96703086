"""A model that writes without torch: what it writes next follows from every token before.

Its slots hold tokens where a real one holds their keys and values, so that whoever mixes streams
up, or reads what was never computed, is found out.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serve.generation.errors import StepTooLarge
from serve.generation.sampling import Sampling
from serve.generation.schedule import Plan
from serve.generation.sequence import Sequence as Stream
from serve.generation.server import GenerationServer
from serve.models.contract import ModelServer
from serve.models.settings import GeneratorSettings

VOCABULARY = 128
END = 127
"""Ends an answer. Never written by `follows`."""


def follows(tokens: Sequence[int]) -> int:
    """The next token: a letter."""
    value = 7
    for token in tokens:
        value = (value * 31 + token + 1) % 1_000_003
    return ord("a") + value % 26


def written(prompt: Sequence[int], count: int) -> list[int]:
    """What is written after `prompt`."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(follows(tokens))
    return tokens[len(prompt) :]


class FakeForward:
    """Implements `engine.Forward`. `most`: tokens that fit into a step; `gate`: a step waits for
    one, where given; `poison`: a token after which a slot holds no numbers, until it is cleared."""

    def __init__(self, slots: int = 4, context: int = 256) -> None:
        self.slots, self.context = slots, context
        self.most: int | None = None
        self.error: Exception | None = None
        self.gate: threading.Semaphore | None = None
        self.poison: int | None = None
        self._ill: set[int] = set()
        self.plans: list[Plan] = []
        self._held: list[list[int]] = [[] for _ in range(slots)]

    def run(self, plan: Plan) -> NDArray[np.float32]:
        """See `engine.Forward`."""
        if self.gate is not None:
            self.gate.acquire()
        if self.error is not None:
            raise self.error
        self._ill -= set(plan.cleared)
        for copy in plan.copies:
            assert copy.source not in self._ill
            assert len(self._held[copy.source]) >= copy.length
            self._held[copy.target] = self._held[copy.source][: copy.length]
        if self.most is not None and sum(len(work.tokens) for work in plan.works) > self.most:
            raise StepTooLarge("no memory")
        self.plans.append(plan)
        assert [work.slot for work in plan.works] == list(range(len(plan.works)))
        rows = []
        for work in plan.works:
            held = self._held[work.slot]
            assert len(held) >= work.start
            held[work.start :] = work.tokens
            if self.poison in work.tokens:
                self._ill.add(work.slot)
            if work.last:
                ill = np.float32(np.nan if work.slot in self._ill else 0)
                rows.append(self._logits(held) + ill)
        return np.array(rows, dtype=np.float32).reshape(-1, VOCABULARY)

    def _logits(self, tokens: list[int]) -> NDArray[np.float32]:
        logits = np.zeros(VOCABULARY, dtype=np.float32)
        logits[follows(tokens)] = 10
        return logits


class Letters:
    """Implements `sequence.Text`: a token is a character's number."""

    def step(self, token: int) -> str:
        """See `sequence.Text`."""
        return chr(token)


def stream(prompt: Sequence[int], most: int = 5, **given: Any) -> Stream:
    """A stream that always takes the likeliest token."""
    given.setdefault("sampling", Sampling(temperature=0))
    return Stream(tokens=list(prompt), most=most, text=Letters(), ends=frozenset({END}), **given)


def server(forward: FakeForward, queue: int = 8) -> GenerationServer:
    """A server over `forward`; a message's characters are the prompt's tokens."""

    def load(name: str, context: int, threads: int) -> Any:
        chat = SimpleNamespace(
            prompt=lambda messages: [min(ord(c), 126) for each in messages for c in each.text],
            text=Letters,
        )
        grammars = SimpleNamespace(bytes_of=lambda token: bytes([token]))
        return SimpleNamespace(
            forward=forward, chat=chat, grammars=grammars, ends=frozenset({END}), chunk=16
        )

    return GenerationServer(GeneratorSettings(generator="fake", queue=queue), load)


def body(text: str, **more: Any) -> Mapping[str, Any]:
    """A request with one message."""
    asked = {"model": "fake", "messages": [{"role": "user", "content": text}]}
    return {**asked, "temperature": 0, **more}


async def until(true: Any) -> None:
    """Let the loop and the model's thread go on until `true()`."""
    while not true():  # noqa: ASYNC110
        await asyncio.sleep(0.001)  # the thread tells nobody


class DirectCalls:
    """`ReadyCalls` of one server in this process."""

    def __init__(self, served: ModelServer) -> None:
        self._served = served

    async def ready(self, model: str) -> None:
        """It is."""

    async def answer(
        self, model: str, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> bytes:
        """See `ModelCalls.answer`."""
        return await self._served.answer(endpoint, body, seconds)

    async def stream(
        self, model: str, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> AsyncGenerator[bytes]:
        """See `ModelCalls.stream`."""
        async with aclosing(self._served.stream(endpoint, body, seconds)) as chunks:
            async for chunk in chunks:
                yield chunk
