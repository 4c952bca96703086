"""A model that writes, as the cluster asks it: OpenAI's JSON in and out.

Invariant: a call that ends, however it does, lets go of its slot at the next step; nobody waits
beyond the seconds of the call, and not more wait than `queue` says.
"""

from __future__ import annotations

import asyncio
import gc
import math
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

from serve.ask.errors import TimedOut, Unavailable
from serve.generation.engine import Engine, Forward
from serve.generation.errors import broke, overflow, refused
from serve.generation.parameters import Asked, read_asked
from serve.generation.sequence import Piece, Sequence
from serve.generation.wire import Answer, Counts
from serve.models.errors import BUSY_SECONDS, ModelBusy
from serve.models.numbers import QUEUE, RUNNING
from serve.models.settings import GeneratorSettings

ENDPOINT = "chat/completions"


class GenerationServer:
    """See `serve.models.contract.ModelServer`."""

    def __init__(
        self, settings: GeneratorSettings, load: Callable[[str, int, int], Any] | None = None
    ) -> None:
        """Loads the model; `load`: by what. Raises GenerationModelError."""
        load = load or import_module("serve.generation.load").load
        threads = math.ceil(settings.cpus) if settings.cpus else os.cpu_count() or 1
        self._model = load(settings.generator, settings.context, threads)
        forward: Forward = self._model.forward
        self._context = forward.context
        self._queue = settings.queue
        self._engine = Engine(forward, self._model.chunk)
        # The model computes in one thread; the grammars and the tokens of prompts are made beside.
        self._steps = ThreadPoolExecutor(1, "generation")
        self._beside = ThreadPoolExecutor(2, "prompts")
        self._open: dict[Sequence, asyncio.Queue[Piece]] = {}
        self._asked = 0
        self._closed = False
        self._more = False
        self._running: asyncio.Task[None] | None = None

    async def answer(self, endpoint: str, body: Mapping[str, Any], seconds: float) -> bytes:
        """See `ModelServer.answer`."""
        call = _Call(self, endpoint, body, seconds)
        pieces = [piece async for piece in call.pieces() if piece is not None]
        return call.answer.whole(pieces, call.counts())

    async def stream(
        self, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> AsyncGenerator[bytes]:
        """See `ModelServer.stream`."""
        call = _Call(self, endpoint, body, seconds)
        pieces = call.pieces()
        try:
            async for piece in pieces:
                if piece is None:
                    yield call.answer.begin()
                    continue
                for chunk in call.answer.chunks(piece):
                    yield chunk
            if call.asked.include_usage:
                yield call.answer.usage(call.counts())
        finally:
            await pieces.aclose()

    def numbers(self) -> Mapping[str, float]:
        """See `ModelServer.numbers`."""
        numbers = self._engine.numbers()
        return {**numbers, QUEUE: max(0.0, self._asked - numbers[RUNNING])}

    def check_health(self) -> None:
        """See `ModelServer.check_health`."""
        if self._engine.broken is not None:
            raise self._engine.broken
        if self._running is not None and self._running.done():
            self._running.result()

    async def aclose(self) -> None:
        """See `ModelServer.aclose`. The model's memory is free when this returns."""
        if self._closed:
            return
        self._closed = True
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        self._steps.shutdown(cancel_futures=True)
        self._beside.shutdown(cancel_futures=True)
        # An error of it holds the frames that it came through, and what these hold.
        self._running = None
        del self._engine, self._model
        await asyncio.to_thread(_free)

    def check_open(self) -> None:
        """Raises Unavailable where the model is let go of."""
        if self._closed:
            raise Unavailable("the model is being let go of", 503, BUSY_SECONDS)

    def enter(self) -> None:
        """One more call. Raises ModelBusy where as many wait as may, and Unavailable where the
        model is broken."""
        if self._engine.broken is not None:
            raise broke(self._engine.broken)
        if self._asked >= self._queue + self._engine.slots:
            said = f"{self._queue} requests wait for this model already"
            error = ModelBusy(said, 503, BUSY_SECONDS)
            error.said = said
            raise error
        self._asked += 1

    def leave(self, stream: Sequence | None) -> None:
        """A call has ended."""
        self._asked -= 1
        if stream is not None:
            stream.left = True
            self._open.pop(stream, None)

    async def prepare(self, asked: Asked) -> Sequence:
        """The stream that answers `asked`. Raises Refused and ContextOverflow."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._beside, self._prepared, asked)

    def begin(self, stream: Sequence) -> asyncio.Queue[Piece]:
        """Let the model write `stream`: where its pieces come."""
        pieces: asyncio.Queue[Piece] = asyncio.Queue()
        self._open[stream] = pieces
        self._engine.add(stream)
        self._more = True
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        return pieces

    def new_answer(self, asked: Asked) -> Answer:
        """Who writes the JSON."""
        logprobs = asked.top_logprobs is not None
        return Answer(asked.model, logprobs, self._model.grammars.bytes_of)

    def _prepared(self, asked: Asked) -> Sequence:
        model = self._model
        prompt = model.chat.prompt(asked.messages)
        room = self._context - len(prompt)
        if room < (asked.most or 1):
            raise overflow(self._context, len(prompt), asked.most)
        return Sequence(
            tokens=prompt,
            most=asked.most or room,
            text=model.chat.text(),
            ends=model.ends,
            sampling=asked.sampling,
            seed=asked.seed,
            stops=asked.stops,
            top_logprobs=asked.top_logprobs,
            grammar=model.grammars.of(asked.schema) if asked.schema is not None else None,
            tenant=asked.tenant,
        )

    async def _run(self) -> None:
        """Step after step, for as long as there is something to do."""
        loop = asyncio.get_running_loop()
        while self._more:
            self._more = False
            try:
                ready = await loop.run_in_executor(self._steps, self._engine.step)
            except Exception as error:
                # What it left half done is not to be gone on with.
                self._engine.broken, failure = error, broke(error)
                for pieces in self._open.values():
                    pieces.put_nowait(Piece(error=failure))
                raise
            if ready is None:
                continue
            self._more = True
            for stream, piece in ready:
                if stream in self._open and piece != _NOTHING:
                    self._open[stream].put_nowait(piece)


_NOTHING = Piece()


def _free() -> None:
    """Give memory of what nothing holds any more back, that of a GPU to its other processes."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


class _Call:
    """One request. `asked` and `answer` are there once its pieces are asked for."""

    def __init__(
        self, server: GenerationServer, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> None:
        self._server = server
        self._endpoint = endpoint
        self._body = body
        self._seconds = seconds
        self._stream: Sequence | None = None
        self.asked: Asked
        self.answer: Answer

    async def pieces(self) -> AsyncGenerator[Piece | None]:
        """None once it is being written, then what is written, to the end. Raises an AskError."""
        deadline = asyncio.get_running_loop().time() + self._seconds
        if self._endpoint != ENDPOINT:
            raise refused(f"This model writes: ask it at /v1/{ENDPOINT}.", "model")
        self._server.check_open()
        self.asked = read_asked(self._body)
        self.answer = self._server.new_answer(self.asked)
        self._server.enter()
        try:
            try:
                async with asyncio.timeout_at(deadline):
                    self._stream = await self._server.prepare(self.asked)
                pieces = self._server.begin(self._stream)
                started = False
                while True:
                    async with asyncio.timeout_at(deadline):
                        piece = await pieces.get()
                    if piece.error is not None:
                        raise piece.error
                    if not started:
                        started = True
                        yield None
                    yield piece
                    if piece.finish is not None:
                        return
            except TimeoutError as error:
                raise TimedOut(f"no whole answer within {self._seconds:.0f} s", 504) from error
        finally:
            self._server.leave(self._stream)

    def counts(self) -> Counts:
        """The tokens of the answer, once it is there."""
        stream = self._stream
        assert stream is not None, "there are no tokens before there are pieces"  # noqa: S101
        return Counts(stream.prompt, stream.reused, stream.written)
