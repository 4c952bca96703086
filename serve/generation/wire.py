"""OpenAI's JSON of a chat completion, whole and in chunks. Pure.

Invariant: the chunks of a stream, put together, say the same as the whole answer.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from serve.generation.sampling import TokenLogprob
from serve.generation.sequence import Chosen, Piece

BytesOf = Callable[[int], bytes]
"""What a token stands for."""


class Counts:
    """The tokens of one answer."""

    def __init__(self, prompt: int, cached: int, written: int) -> None:
        self._usage = {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
            "prompt_tokens_details": {"cached_tokens": cached},
        }

    def shown(self) -> dict[str, Any]:
        """As `usage`."""
        return self._usage


class Answer:
    """Writes one answer. `logprobs`: they were asked for; `bytes_of`: of a token."""

    def __init__(self, model: str, logprobs: bool, bytes_of: BytesOf) -> None:
        self._head = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": model,
        }
        self._logprobs = logprobs
        self._bytes_of = bytes_of

    def whole(self, pieces: Sequence[Piece], counts: Counts) -> bytes:
        """The answer that `pieces` are, the last of which ends it."""
        chosen = [each for piece in pieces for each in piece.chosen]
        text = "".join(piece.text for piece in pieces)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text, "refusal": None},
            "logprobs": self._shown(chosen) if self._logprobs else None,
            "finish_reason": pieces[-1].finish,
        }
        head = {**self._head, "object": "chat.completion"}
        return orjson.dumps({**head, "choices": [choice], "usage": counts.shown()})

    def begin(self) -> bytes:
        """The first chunk, which says who speaks."""
        return self._chunk({"role": "assistant", "content": ""}, None)

    def chunks(self, piece: Piece) -> Iterator[bytes]:
        """One for what is shown, one for the end."""
        if piece.text or piece.chosen:
            logprobs = self._shown(piece.chosen) if self._logprobs else None
            yield self._chunk({"content": piece.text}, None, logprobs)
        if piece.finish is not None:
            yield self._chunk({}, piece.finish)

    def usage(self, counts: Counts) -> bytes:
        """The chunk behind the end."""
        head = {**self._head, "object": "chat.completion.chunk"}
        return orjson.dumps({**head, "choices": [], "usage": counts.shown()})

    def _chunk(self, delta: dict[str, str], finish: str | None, logprobs: Any = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return orjson.dumps({**self._head, "object": "chat.completion.chunk", "choices": [choice]})

    def _shown(self, chosen: Sequence[Chosen]) -> dict[str, Any]:
        content = [
            self._entry(each.token) | {"top_logprobs": [self._entry(top) for top in each.top]}
            for each in chosen
        ]
        return {"content": content, "refusal": None}

    def _entry(self, told: TokenLogprob) -> dict[str, Any]:
        raw = self._bytes_of(told.token)
        return {
            "token": raw.decode("utf-8", "replace"),
            "logprob": told.logprob,
            "bytes": list(raw),
        }
