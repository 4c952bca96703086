"""One step of a model of transformers over all slots, on one device.

The tokens of all streams go through the model as one row, so that every matrix is read once a
step; attention alone looks at each stream for itself, through transformers' own interface for
that. So streams join and leave at every step, and a prompt is read in pieces beside them.

Invariant: a stream's logits are those that the model gives for it alone (to the rounding), whoever
is beside it: `take_over` shows it for the model at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from serve.generation.errors import GenerationModelError, StepTooLarge
from serve.generation.packed import pack_linears
from serve.generation.schedule import Copy, Plan, Work

ATTENTION = "fupan_slots"
"""The name of `_attention` in transformers."""
TOLERANCE = 0.05
"""By how much logits may differ, as a share of the largest, half precision and all."""


class _Span(NamedTuple):
    """Tokens of one stream that look back together: those from `first` to `last` of the row.
    `mask`: once for each of the heads that share keys."""

    slot: int
    first: int
    last: int
    mask: torch.Tensor


class _Row(NamedTuple):
    """One step, as attention needs it. The first `streams` slots are read as one block, each for
    the last of its tokens; where there are more, `spans` says it again for all of them."""

    keys: list[torch.Tensor]
    values: list[torch.Tensor]
    slots: torch.Tensor
    places: torch.Tensor
    streams: int
    lasts: torch.Tensor
    mask: torch.Tensor
    spans: list[_Span]


class SlotForward:
    """A causal model whose keys and values lie in slots. Implements `engine.Forward`."""

    def __init__(self, model: Any, slots: int, context: int) -> None:
        """Raises GenerationModelError where the model cannot be run like this, or not a single
        slot fits into memory."""
        self.slots, self.context = slots, context
        self._model = model
        self._device = model.device
        config = model.config
        self._groups = config.num_attention_heads // config.num_key_value_heads
        shape = (slots, config.num_key_value_heads, context, head_size(config))
        layers = range(config.num_hidden_layers)
        with _memory():
            self._keys = [self._zeros(shape) for _ in layers]
            self._values = [self._zeros(shape) for _ in layers]

    def run(self, plan: Plan) -> NDArray[np.float32]:
        """See `engine.Forward`."""
        with torch.inference_mode(), _memory():
            for slot in plan.cleared:
                for layer in (*self._keys, *self._values):
                    layer[slot] = 0
            for copy in plan.copies:
                self._copy(copy)
            tokens = [token for work in plan.works for token in work.tokens]
            row, wanted = self._row(plan.works)
            logits = self._model(
                input_ids=self._tensor(tokens)[None],
                position_ids=row.places[None],
                use_cache=False,
                logits_to_keep=wanted,
                slots_row=row,
            ).logits[0]
            return np.asarray(logits.float().cpu().numpy())

    def take_over(self, tokens: list[int]) -> None:
        """Give the model this attention, and on the CPU packed matrices; then compare with its own
        way on `tokens` (some ten). Raises GenerationModelError."""
        wanted = torch.tensor([tokens], device=self._device)
        with torch.inference_mode():
            expected = self._model(input_ids=wanted, use_cache=False).logits[0, -1].float()
        self._model.set_attn_implementation(ATTENTION)
        pack_linears(self._model)
        half = len(tokens) // 2
        self.run(Plan([], [Work(0, 0, tokens[:half], False)]))
        beside = Work(1, 0, tokens[1:], True)
        first = Work(0, half, tokens[half:-1], False)
        self.run(Plan([], [first, beside] if self.slots > 1 else [first]))
        found = self.run(Plan([], [Work(0, len(tokens) - 1, tokens[-1:], True)]))[0]
        off = float(np.abs(found - expected.cpu().numpy()).max() / expected.abs().max().cpu())
        if not off < TOLERANCE:
            raise GenerationModelError(
                f"{self._model.config.model_type} models look back in a way that is not supported "
                f"here (logits differ by {off:.0%}): name a model of the Llama or Qwen family"
            )

    def _zeros(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Zeros, since what is masked must be numbers, too. On the CPU by numpy: its zeros take no
        memory before they are written to."""
        if self._device.type == "cpu" and self._model.dtype == torch.float32:
            return torch.from_numpy(np.zeros(shape, dtype=np.float32))
        return torch.zeros(shape, dtype=self._model.dtype, device=self._device)

    def _copy(self, copy: Copy) -> None:
        for held in (self._keys, self._values):
            for layer in held:
                layer[copy.target, :, : copy.length] = layer[copy.source, :, : copy.length]

    def _row(self, works: list[Work]) -> tuple[_Row, torch.Tensor]:
        """`works` as one row, and the places in it whose logits are wanted."""
        slots: list[int] = []
        places: list[int] = []
        lasts: list[int] = []
        spans: list[_Span] = []
        for work in works:
            first, size = len(slots), len(work.tokens)
            end = work.start + size
            slots += [work.slot] * size
            places += range(work.start, end)
            lasts.append(len(slots) - 1)
            if size > 1:
                mask = self._mask(list(range(work.start, end)))
                spans.append(_Span(work.slot, first, len(slots), mask.repeat(self._groups, 1)))
        streams = _leading(works)
        mask = self._mask([places[last] for last in lasts[:streams]])
        row = _Row(
            self._keys,
            self._values,
            self._tensor(slots),
            self._tensor(places),
            streams,
            self._tensor(lasts[:streams]),
            mask[:, None, None],
            spans,
        )
        return row, self._tensor(
            [last for work, last in zip(works, lasts, strict=True) if work.last]
        )

    def _mask(self, places: list[int]) -> torch.Tensor:
        """For a token at each of `places`, what is added to its attention: nothing up to itself."""
        at = self._tensor(places)[:, None]
        seen = torch.arange(max(places, default=-1) + 1, device=self._device)[None] <= at
        mask = torch.zeros(seen.shape, dtype=self._model.dtype, device=self._device)
        return mask.masked_fill_(~seen, float("-inf"))

    def _tensor(self, numbers: list[int]) -> torch.Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self._device)


def head_size(config: Any) -> int:
    """Numbers of one key of one head."""
    return int(
        getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    )


def _leading(works: list[Work]) -> int:
    """Streams up to the last that computes one token, and so is not a span of its own."""
    single = [place for place, work in enumerate(works) if len(work.tokens) == 1]
    # The works of a plan are by slot and without a hole.
    return single[-1] + 1 if single else 0


def _attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _: torch.Tensor | None,
    *,
    slots_row: _Row,
    scaling: float,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """The attention of one layer. The heads that share keys are taken for as many more queries:
    nothing is repeated in memory."""
    if kwargs.get("softcap") is not None or kwargs.get("sliding_window") is not None:
        raise NotImplementedError("a sliding window or capped logits")
    keys, values = slots_row.keys[module.layer_idx], slots_row.values[module.layer_idx]
    keys[slots_row.slots, :, slots_row.places] = key[0].transpose(0, 1)
    values[slots_row.slots, :, slots_row.places] = value[0].transpose(0, 1)
    heads, tokens, size = query.shape[1:]
    shared = key.shape[1]
    group = heads // shared
    queries = query[0].reshape(shared, group, tokens, size)
    out = queries.new_empty(tokens, shared, group, size)
    if count := slots_row.streams:
        end = slots_row.mask.shape[-1]
        out[slots_row.lasts] = F.scaled_dot_product_attention(
            queries[:, :, slots_row.lasts].permute(2, 0, 1, 3),
            keys[:count, :, :end],
            values[:count, :, :end],
            attn_mask=slots_row.mask,
            scale=scaling,
        )
    for slot, first, last, mask in slots_row.spans:
        end = mask.shape[-1]
        found = F.scaled_dot_product_attention(
            queries[:, :, first:last].reshape(1, shared, group * (last - first), size),
            keys[slot : slot + 1, :, :end],
            values[slot : slot + 1, :, :end],
            attn_mask=mask,
            scale=scaling,
        )
        out[first:last] = found.view(shared, group, last - first, size).permute(2, 0, 1, 3)
    return out.view(1, tokens, heads, size), None


@contextmanager
def _memory() -> Iterator[None]:
    """Raises StepTooLarge where torch finds no memory: an error of its own on a GPU, a plain one
    on the CPU."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        torch.cuda.empty_cache()
        raise StepTooLarge(str(error)) from error
    except MemoryError as error:
        raise StepTooLarge(str(error)) from error
    except RuntimeError as error:
        if "can't allocate memory" not in str(error):
            raise
        raise StepTooLarge(str(error)) from error


ALL_ATTENTION_FUNCTIONS.register(ATTENTION, _attention)
