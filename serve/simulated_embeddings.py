"""Embeddings of the simulated provider: texts that share words are near each other.

Invariant: a text has the same vector always and everywhere; all vectors have length 1. Pure.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import struct
from collections.abc import Sequence
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from serve.ask.tokens import count
from serve.simulated_protocol import ApiError, read_as
from serve.simulated_verdict import Verdict

DIMENSIONS = 64
MOST_DIMENSIONS = 4096
MOST_INPUTS = 2048
"""Of one request, as OpenAI has it."""
MOST_TOKENS = 8192
"""Of one input."""
_WORD = re.compile(r"[a-z0-9']+|[\u4e00-\u9fff]")

Tokens = list[StrictInt]


class EmbeddingRequest(BaseModel):
    """The body of a request for embeddings; fields not named here are ignored."""

    model_config = ConfigDict(strict=True)

    model: str
    input: StrictStr | list[StrictStr] | Tokens | list[Tokens]
    dimensions: int | None = Field(default=None, ge=1, le=MOST_DIMENSIONS)
    encoding_format: Literal["float", "base64"] | None = None

    @property
    def inputs(self) -> list[str | Tokens]:
        """Each input by itself."""
        if isinstance(self.input, str):
            return [self.input]
        if self.input and isinstance(self.input[0], int):
            return [[int(each) for each in self.input if isinstance(each, int)]]
        return [each for each in self.input if not isinstance(each, int)]


def read_embedding_request(body: bytes) -> EmbeddingRequest:
    """The request in a body. Raises ApiError (400) that names the parameter that is wrong."""
    request = read_as(EmbeddingRequest, body)
    inputs = request.inputs
    if not inputs or not all(inputs):
        raise _invalid("input cannot be empty.")
    if len(inputs) > MOST_INPUTS:
        raise _invalid(f"at most {MOST_INPUTS} inputs are taken, not {len(inputs)}.")
    if any(_tokens(each) > MOST_TOKENS for each in inputs):
        raise _invalid(f"an input has at most {MOST_TOKENS} tokens.")
    return request


def prompt_tokens(request: EmbeddingRequest) -> int:
    """Tokens of all inputs."""
    return sum(map(_tokens, request.inputs))


def embedded(request: EmbeddingRequest) -> Verdict:
    """The verdict that holds the vectors."""
    size = request.dimensions or DIMENSIONS
    data = [
        {"object": "embedding", "index": index, "embedding": _written(vector(each, size), request)}
        for index, each in enumerate(request.inputs)
    ]
    tokens = prompt_tokens(request)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    body = {"object": "list", "data": data, "model": request.model, "usage": usage}
    return Verdict(200, orjson.dumps(body), model=request.model, prompt_tokens=tokens)


def vector(given: str | Tokens, size: int) -> list[float]:
    """Of the words of a text, or of its tokens: the sum of a direction for each."""
    words = [*map(str, given)] if isinstance(given, list) else _WORD.findall(given.lower())
    total = [0.0] * size
    for word in words or [str(given)]:
        for place, part in enumerate(_direction(word, size)):
            total[place] += part
    length = math.sqrt(sum(part * part for part in total)) or 1.0
    return [part / length for part in total]


def _direction(word: str, size: int) -> list[float]:
    drawn = hashlib.shake_128(word.encode("utf-8", "surrogatepass")).digest(size)
    return [byte - 127.5 for byte in drawn]


def _written(numbers: Sequence[float], request: EmbeddingRequest) -> Any:
    if request.encoding_format == "base64":
        return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()
    return [round(number, 6) for number in numbers]


def _tokens(given: str | Tokens) -> int:
    return len(given) if isinstance(given, list) else count(given)


def _invalid(message: str) -> ApiError:
    return ApiError(400, f"Invalid 'input': {message}", code="invalid_value", param="input")
