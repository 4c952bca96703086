"""Answers to JSON schemas by a model that says anything at all: what ends by itself fits.

The vocabulary is the small model's, each next token as likely as another: far worse than a model.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from serve.generation.schedule import Plan
from serve.generation.server import GenerationServer
from serve.models.settings import GeneratorSettings

VOCABULARY = 49_152


class Anything:
    """Implements `engine.Forward`, without a model."""

    slots, context = 24, 512

    def __init__(self) -> None:
        self._random = np.random.default_rng(1)

    def run(self, plan: Plan) -> NDArray[np.float32]:
        """See `engine.Forward`."""
        rows = sum(work.last for work in plan.works)
        return self._random.normal(size=(rows, VOCABULARY)).astype(np.float32)


def anything(_name: str, context: int, _threads: int) -> Any:
    """See `serve.generation.load.load`."""
    from serve.generation.chat import Chat
    from serve.generation.grammar import Grammars
    from serve.generation.load import read_model
    from serve.models.settings import SMOLLM

    _, tokenizer = read_model(SMOLLM, "cpu")
    ends = frozenset({int(tokenizer.eos_token_id)})
    return SimpleNamespace(
        forward=Anything(),
        chat=Chat(tokenizer, context),
        grammars=Grammars(tokenizer, VOCABULARY, ends),
        ends=ends,
        chunk=4096,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "answers", [40, pytest.param(1000, marks=pytest.mark.thorough)], ids=["some", "thousand"]
)
async def test_every_answer_that_ends_by_itself_fits_its_schema(answers: int) -> None:
    from scripts.benchmarks.generate_json import constrained

    served = GenerationServer(GeneratorSettings(generator="anything", queue=64), anything)
    kept = await constrained(served, answers, seed=2)
    await served.aclose()
    assert (kept.wrong, kept.whys) == (0, ())
    assert kept.ended == answers
