"""Vectors of texts, kept in the store of answers: what was embedded once is not embedded again.

Invariant: a kept vector is, to the last bit, the one that the model gave; a store that fails or is
damaged costs time, never a run.
"""

from __future__ import annotations

import sqlite3
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import numpy as np
import orjson

from job.themes.space import Encode, Vectors
from serve.ask.answers import answer_key
from serve.ask.answers_at import AnswersAt, OpenAnswers, opener
from serve.ask.answers_file import StoreError

AT_ONCE = 512
"""Texts looked up, embedded and stored in one go: what an interrupted run can lose."""
_VERSION = "vector-1"
_FAILED = (sqlite3.Error, StoreError, OSError)


def keeping(at: AnswersAt, model: str, encode: Encode) -> Encode:
    """`encode`, of the model whose full name is `model`, for what the store of answers at `at`
    does not hold."""
    opened = opener(at)

    def encode_new(texts: Sequence[str]) -> Vectors:
        rows = [row for some in _parts(texts) for row in _encode(opened, model, encode, some)]
        return np.stack(rows) if rows else encode(texts)

    return encode_new


def _parts(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), AT_ONCE):
        yield texts[start : start + AT_ONCE]


def _encode(
    opened: Callable[[], OpenAnswers], model: str, encode: Encode, texts: Sequence[str]
) -> list[Vectors]:
    keys = {text: answer_key(_VERSION, model, text) for text in texts}
    known: dict[str, Vectors] = {}
    with suppress(*_FAILED), opened() as answers:
        found = answers.get_many(list(keys.values()))
        for text, key in keys.items():
            if key in found and (vector := _decoded(found[key])) is not None:
                known[text] = vector
    missing = [text for text in keys if text not in known]
    if missing:
        new = dict(zip(missing, encode(missing), strict=True))
        items = [(keys[text], _encoded(model, vector)) for text, vector in new.items()]
        with suppress(*_FAILED), opened() as answers:
            answers.put_many(items, replace=True)
        known |= new
    return [known[text] for text in texts]


def _encoded(model: str, vector: Vectors) -> bytes:
    data = vector.astype("<f4").tobytes()
    return orjson.dumps({"model": model, "vector": b64encode(data).decode()})


def _decoded(value: bytes) -> Vectors | None:
    """The vector, or None for what is none: one that a model gives has the length 1."""
    try:
        data = b64decode(orjson.loads(value)["vector"], validate=True)
        vector = np.frombuffer(data, "<f4").astype(np.float32)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return None
    return vector if abs(float(np.linalg.norm(vector)) - 1.0) < _UNIT_ERROR else None


_UNIT_ERROR = 1e-3
"""Rounding is a thousandth of it; a bit that flipped in an exponent is seen."""
