"""What a deployment answered, read as vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pytest

from serve.ask.errors import Unavailable
from serve.embedding.answer import read_answer
from serve.embedding.wire import written

VECTORS = np.array([[0.6, 0.8], [-1.0, 0.0]], dtype=np.float32)


async def test_what_was_written_is_read_to_the_last_bit() -> None:
    answer = await written(VECTORS, "base64", "m", 3)
    assert np.array_equal(read_answer(answer, 2), VECTORS)
    turned = orjson.loads(answer)
    turned["data"].reverse()
    assert np.array_equal(read_answer(orjson.dumps(turned), 2), VECTORS)


ONE: dict[str, Any] = {"index": 0, "embedding": "AACAPw=="}


@pytest.mark.parametrize(
    "data",
    [
        [],
        [ONE],
        [ONE, ONE],
        [ONE, {"index": 2, "embedding": "AACAPw=="}],
        [ONE, {"index": 1, "embedding": "AACAPwAAgD8="}],
        [ONE, {"index": 1, "embedding": "AAA="}],
        [ONE, {"index": 1, "embedding": "AADAfw=="}],
        [ONE, {"index": 1, "embedding": [1.0]}],
        [ONE, {"index": 1}],
        [ONE, None],
        None,
    ],
    ids=["none", "few", "twice", "gap", "longer", "odd", "nan", "floats", "empty", "null", "no"],
)
def test_anything_else_is_an_error(data: Any) -> None:
    with pytest.raises(Unavailable) as told:
        read_answer(orjson.dumps({"data": data}), 2)
    assert told.value.status == 500


def test_what_is_no_json_is_an_error() -> None:
    with pytest.raises(Unavailable):
        read_answer(b"<html>", 1)
