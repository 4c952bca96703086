"""Vectors as OpenAI's answer.

Invariant: item i belongs to input i; a base64 item is its numbers as little-endian float32, a float
item the shortest decimals that are read as the same float32.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from serve.embedding.engine import Vectors
from serve.embedding.request import Format

AT_ONCE: Final = 32
"""Vectors written at once, before others have their turn on the loop: about half a millisecond."""


def shortened(vectors: Vectors, dimensions: int) -> Vectors:
    """The first numbers of each vector, brought to length 1 again."""
    if dimensions == vectors.shape[1]:
        return vectors
    cut = vectors[:, :dimensions]
    lengths = np.linalg.norm(cut, axis=1, keepdims=True)
    found: Vectors = (cut / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32)
    return found


async def written(vectors: Vectors, encoding: Format, model: str, tokens: int) -> bytes:
    """The answer's JSON. `tokens`: of all inputs."""
    parts = []
    for places in _in_pieces(range(len(vectors))):
        parts.append(b",".join(_item(place, vectors[place], encoding) for place in places))
        await asyncio.sleep(0)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    rest = orjson.dumps({"model": model, "usage": usage})
    return b'{"object":"list","data":[' + b",".join(parts) + b"]," + rest[1:]


def _in_pieces(places: Sequence[int]) -> Iterable[Sequence[int]]:
    return (places[start : start + AT_ONCE] for start in range(0, len(places), AT_ONCE))


def _item(place: int, vector: NDArray[np.float32], encoding: Format) -> bytes:
    embedding: Any = vector
    if encoding == "base64":
        embedding = base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return orjson.dumps(
        {"object": "embedding", "index": place, "embedding": embedding},
        option=orjson.OPT_SERIALIZE_NUMPY,
    )
