"""A model of vectors of this process, as it is asked over OpenAI's protocol.

Invariant: what is wrong with one text harms the requests that hold it and no other; no request
waits longer than its time, and none is taken in that could not be answered within it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from serve.ask.errors import AskError, TimedOut, Unavailable
from serve.batch_controller import BatchController, Bounds
from serve.batcher import Batcher, Closed, TooLate
from serve.cache.store import MemoryStore
from serve.embedder import Embedder
from serve.embedding.computing import Computing, TextFailed
from serve.embedding.request import Wanted, over_long, read_wanted, refused, size
from serve.embedding.texts import Flights, Measured, VectorCache, key_of
from serve.embedding.wire import shortened, written
from serve.models.errors import BUSY_SECONDS, ModelBusy
from serve.models.numbers import BATCH_SIZE, CACHE_USE, QUEUE, RUNNING, TOKENS_PER_SECOND
from serve.models.settings import EmbedderSettings

CACHE_BYTES: Final = 256 * 2**20
"""Of the vectors that are kept: about 145,000 of 384 numbers."""
TARGET_SECONDS: Final = 0.25
"""Of a batch: nobody who comes while all slots are taken waits much longer for one."""
LONGEST_SECONDS: Final = 1.0
"""The same where the queue takes so much longer that a turn soon is of no use."""
FIRST: Final = 4
"""Times `Engine.enough`: the limit of the first batch."""
LEAST: Final = 32
"""Of `Engine.enough`, the part that the limit never sinks below: how far memory that is short, or a
device that others use too, can push it."""
INLINE_CHARACTERS: Final = 4096
"""Read and counted on the loop, in two milliseconds; more is in a thread."""
STUCK_SECONDS: Final = 300.0
"""A batch that takes longer will never end."""

_ENDING = "{} is being let go of"
_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


class EmbeddingServer:
    """See `serve.models.contract.ModelServer`."""

    def __init__(
        self,
        settings: EmbedderSettings,
        load: Callable[[str, int | None], Embedder] = Embedder,
    ) -> None:
        """Loads the model. Raises EmbeddingModelError."""
        threads = math.ceil(settings.cpus) if settings.cpus else None
        self._embedder = load(settings.embedder, threads)
        engine = self._engine = self._embedder.engine
        self._name, self._dim, self._slots = engine.name, engine.dim, engine.slots
        self._most_tokens = engine.most_tokens
        self._closed = False
        self._queue = settings.queue
        self._counting = 0
        self._computing = Computing(self._embedder)
        self._batcher = Batcher[str, NDArray[np.float32]](
            self._computing.compute,
            BatchController(
                Bounds(
                    max(1, engine.enough // LEAST),
                    engine.most_batch,
                    TARGET_SECONDS,
                    LONGEST_SECONDS,
                ),
                FIRST * engine.enough,
            ),
            slots=engine.slots,
            enough=engine.enough,
            padded=engine.padded,
        )
        self._cache = VectorCache(MemoryStore(CACHE_BYTES, time.monotonic), CACHE_BYTES)
        self._flights = Flights(self._batcher, self._cache)

    async def answer(self, endpoint: str, body: Mapping[str, Any], seconds: float) -> bytes:
        """See `ModelServer.answer`."""
        if endpoint != "embeddings":
            raise refused(
                f"{self._name} gives vectors, at /v1/embeddings, and nothing else.",
                "model",
                "model_not_supported",
            )
        if self._closed:
            raise Unavailable(_ENDING.format(self._name), 503, BUSY_SECONDS)
        until = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(until):
                return await self._answer(body, until)
        except AskError:
            raise
        except (TooLate, TimeoutError) as error:
            raise TimedOut(f"{self._name} had no vectors within {seconds:g} s") from error
        except Closed as error:
            raise Unavailable(str(error), 503, BUSY_SECONDS) from error
        except Exception as error:  # of a model, or its tokenizer: anything
            if self._closed:
                raise Unavailable(_ENDING.format(self._name), 503, BUSY_SECONDS) from error
            raise Unavailable(f"{self._name} failed: {error}", 500) from error

    async def stream(
        self, endpoint: str, body: Mapping[str, Any], seconds: float
    ) -> AsyncGenerator[bytes]:
        """See `ModelServer.stream`: vectors are not streamed."""
        raise refused(
            f"{self._name} gives vectors, at /v1/embeddings, and streams nothing.",
            "model",
            "model_not_supported",
        )
        yield b""

    def numbers(self) -> Mapping[str, float]:
        """See `ModelServer.numbers`."""
        waiting = self._flights.waiting()
        return {
            QUEUE: waiting + self._counting,
            RUNNING: self._flights.requests() - waiting,
            BATCH_SIZE: self._batcher.mean_batch,
            TOKENS_PER_SECOND: self._batcher.mean_speed * self._slots,
            CACHE_USE: self._cache.use,
        }

    def check_health(self) -> None:
        """See `ModelServer.check_health`."""
        longest = self._batcher.longest()
        if longest > STUCK_SECONDS:
            raise RuntimeError(f"{self._name}: a batch has not ended for {longest:.0f} s")
        self._computing.check()

    async def aclose(self) -> None:
        """See `ModelServer.aclose`. The model's memory is free when this returns."""
        if self._closed:
            return
        self._closed = True
        await self._batcher.aclose()
        self._embedder.pool.shutdown(wait=False)
        self._engine.close()

    async def _answer(self, body: Mapping[str, Any], until: float) -> bytes:
        """The answer, by `until` (the loop's clock). Raises AskError, and what the batcher says."""
        wanted, keys = await _aside(size(body), self._read, body)
        found = {key: kept for key in set(keys) if (kept := self._cache.get(key)) is not None}
        texts = dict(zip(keys, wanted.texts, strict=True))
        missing = await self._measured({key: texts[key] for key in texts if key not in found})
        tokens = [(found.get(key) or missing[key]).tokens for key in keys]
        self._check_lengths(wanted, tokens)
        if missing:
            self._check_time(sum(each.read for each in missing.values()), until)
            try:
                found |= await self._flights.vectors(missing, until)
            except TextFailed as error:
                raise self._text_failed(error, missing, keys) from error
        vectors = np.stack([found[key].vector for key in keys])
        return await written(
            shortened(vectors, wanted.dimensions),
            wanted.encoding,
            wanted.model,
            sum(min(each, self._most_tokens) for each in tokens),
        )

    def _read(self, body: Mapping[str, Any]) -> tuple[Wanted, list[bytes]]:
        """What is asked for, and the keys of its texts. Raises AskError."""
        wanted = read_wanted(body, self._dim, self._most_tokens)
        return wanted, [key_of(text) for text in wanted.texts]

    async def _measured(self, texts: Mapping[bytes, str]) -> dict[bytes, Measured]:
        """The texts with their tokens, over-long ones cut. Raises ModelBusy."""
        if not texts:
            return {}
        self._check_queue()
        self._counting += 1
        try:
            measured = await _aside(
                sum(map(len, texts.values())), self._measure, list(texts.values())
            )
        finally:
            self._counting -= 1
        return dict(zip(texts, measured, strict=True))

    def _measure(self, texts: Sequence[str]) -> list[Measured]:
        most = self._most_tokens
        return [
            Measured(text if tokens <= most else self._engine.cut(text), tokens, min(tokens, most))
            for text, tokens in zip(texts, self._engine.count(texts), strict=True)
        ]

    def _check_lengths(self, wanted: Wanted, tokens: Sequence[int]) -> None:
        """Raises ContextOverflow for the first text that the model would not read to its end."""
        most = self._most_tokens
        for place, each in enumerate(tokens):
            if each > most and not wanted.truncate:
                raise over_long(_name(place, len(tokens)), f"{each:,} tokens", most)

    def _check_queue(self) -> None:
        """Raises ModelBusy where the queue is full. Those whose texts are counted wait in it."""
        if self._flights.requests() + self._counting <= self._queue:
            return
        if self._flights.waiting() + self._counting >= self._queue:
            raise ModelBusy(
                f"{self._queue} requests wait for {self._name}, as many as may",
                503,
                max(BUSY_SECONDS, self._batcher.seconds(0)),
            )

    def _check_time(self, tokens: int, until: float) -> None:
        """Raises ModelBusy where the queue is too long for the time that there is."""
        if self._flights.requests() == 0:
            return  # an idle model is tried, however slow it was
        left = until - asyncio.get_running_loop().time()
        needed = self._batcher.seconds(tokens)
        if needed > left:
            raise ModelBusy(
                f"{self._name} would need {needed:.0f} s for what waits and this, and the "
                f"request has {left:.3g} s",
                503,
                max(BUSY_SECONDS, needed - left),
            )

    def _text_failed(
        self, error: TextFailed, missing: Mapping[bytes, Measured], keys: Sequence[bytes]
    ) -> AskError:
        key = next(key for key, measured in missing.items() if measured.text == error.text)
        name = _name(keys.index(key), len(keys))
        if error.fits:
            failed = Unavailable(f"{self._name} failed for '{name}': {error}", 500)
            failed.said = f"it failed for '{name}'"
            return failed
        return refused(
            f"Invalid '{name}': there is not enough memory for it. Shorten it.",
            name,
            "out_of_memory",
        )


async def _aside(size: int, work: Callable[[_Given], _Made], given: _Given) -> _Made:
    """What `work` makes of `given`, which is so long, in a thread where that takes long."""
    return work(given) if size <= INLINE_CHARACTERS else await asyncio.to_thread(work, given)


def _name(place: int, of: int) -> str:
    """Of an input, in what a client is told."""
    return f"input[{place}]" if of > 1 else "input"
