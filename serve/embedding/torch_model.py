"""Any model that sentence-transformers loads: fp16 on a GPU, fp32 on the CPU.

Invariant: only one thread at a time is in the library's tokenizer, which is changed by each call;
the counts come from a copy of it that never cuts and is not changed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

from serve.embedding.allowance import cores, memory_use
from serve.embedding.engine import (
    CHARACTERS_PER_TOKEN,
    DoesNotFit,
    EmbeddingModelError,
    Vectors,
)
from serve.models.weights import fault, said

ENDLESS_TOKENS = 8192
"""Read of a text where the model itself sets no end."""
_SAID_OF_MEMORY = ("allocate memory", "CUBLAS_STATUS_ALLOC_FAILED")
"""By torch on the CPU and by cuBLAS, which have no error of their own for that."""


class TorchEngine:
    """See `Engine`."""

    padded = True

    def __init__(self, name: str, threads: int | None = None) -> None:
        """Raises EmbeddingModelError."""
        try:
            import torch
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise EmbeddingModelError(
                f"embedding model {name!r} needs sentence-transformers: "
                "install fupan with its extra `models` (pip install 'fupan[models]')"
            ) from error
        if wrong := fault(name, modules=True):
            raise EmbeddingModelError(f"embedding model {name!r} cannot be loaded: {wrong}")
        self._torch = torch
        self._gpu = torch.cuda.is_available()
        try:
            model: Any = SentenceTransformer(name, device="cuda" if self._gpu else "cpu")
        except Exception as error:  # the library raises OSError, ValueError, HTTP errors, ...
            raise EmbeddingModelError(
                f"embedding model {name!r} cannot be loaded: {said(name, error)}"
            ) from error
        self._model = (model.half() if self._gpu else model.float()).eval()
        self.name = name
        self.dim = int(model.get_embedding_dimension())
        self._prompt = model.prompts.get(model.default_prompt_name) or ""
        most = model.max_seq_length
        self.most_tokens = int(most) if most and math.isfinite(most) else ENDLESS_TOKENS
        self._tokenizing = threading.Lock()
        self._counting = _uncut(model.tokenizer)
        # On the CPU one batch a core, each on one thread: nobody waits for another after every
        # matrix. A GPU computes one batch while the next is being tokenized.
        self.slots = 2 if self._gpu else threads or cores()
        self.enough = 8192 if self._gpu else 512
        self.most_batch = 2**19 if self._gpu else 2**14

    def enter(self) -> None:
        """See `Engine`."""
        if not self._gpu:
            self._torch.set_num_threads(1)

    def count(self, texts: Sequence[str]) -> list[int]:
        """See `Engine`."""
        whole = [self._prompt + text for text in texts]
        if self._counting is not None:
            return [len(found.ids) for found in self._counting.encode_batch_fast(whole)]
        with self._tokenizing:
            found = self._model.tokenizer(whole, truncation=False)["input_ids"]
        return [len(ids) for ids in found]

    def cut(self, text: str) -> str:
        """See `Engine`. The library itself cuts by tokens."""
        return text[: CHARACTERS_PER_TOKEN * self.most_tokens]

    def run(self, texts: Sequence[str]) -> Vectors:
        """See `Engine`."""
        torch = self._torch
        try:
            with self._tokenizing:
                features = self._model.preprocess(list(texts), prompt=self._prompt or None)
            with torch.inference_mode():
                if self._gpu:
                    torch.cuda.reset_peak_memory_stats()
                    features = {
                        key: value.cuda() if isinstance(value, torch.Tensor) else value
                        for key, value in features.items()
                    }
                found = self._model(features)["sentence_embedding"][:, : self.dim].float()
                vectors = torch.nn.functional.normalize(found, dim=1).cpu().numpy()
        except (MemoryError, RuntimeError) as error:
            if not _of_memory(error, torch):
                raise
            if self._gpu:
                torch.cuda.empty_cache()
            raise DoesNotFit(f"{len(texts)} texts do not fit in memory together") from error
        return vectors  # type: ignore[no-any-return]

    def memory(self) -> float:
        """See `Engine`."""
        if not self._gpu:
            return memory_use()
        cuda = self._torch.cuda
        free, _ = cuda.mem_get_info()
        room = free + cuda.memory_reserved()
        return float(cuda.max_memory_allocated() / room) if room else 1.0

    def close(self) -> None:
        """See `Engine`."""
        del self._model
        if self._gpu:
            self._torch.cuda.empty_cache()


def _uncut(tokenizer: Any) -> Any:
    """A copy of the tokenizer's fast part that neither cuts nor pads; None where it has none."""
    from tokenizers import Tokenizer

    fast = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not isinstance(fast, Tokenizer):
        return None
    copied = Tokenizer.from_str(fast.to_str())
    copied.no_truncation()
    copied.no_padding()
    return copied


def _of_memory(error: Exception, torch: Any) -> bool:
    """Whether memory ran out."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(
        said in str(error) for said in _SAID_OF_MEMORY
    )
