"""The matrices of a torch model as the CPU reads them fastest: laid out once for oneDNN, which else
lays each out anew in every product.

Invariant: a layer's numbers are those of the plain one to the rounding; what computes with its
`weight` otherwise than through the layer gets no number, so that a comparison of the whole model
with its plain self shows it.
"""

from __future__ import annotations

from typing import Any

import torch

ROWS = 32
"""Rows that a product is expected to have. The layout for 32 was as fast as any for 1 to 384.
Measured on two cores (AVX-512) for all matrices of SmolLM2-135M: 50 -> 26 ms with one row,
116 -> 57 with 32, 711 -> 558 with 384."""


class PackedLinear(torch.nn.Module):  # type: ignore[misc]
    """A linear layer of 32-bit numbers, for inference. Takes the place of `plain`."""

    def __init__(self, plain: torch.nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = plain.in_features, plain.out_features
        self.bias = plain.bias
        with torch.no_grad():
            self._packed = torch.ops.mkldnn._reorder_linear_weight(plain.weight.detach(), ROWS)
        # Some models ask a layer for the type, the shape or the device of its weight.
        self.weight = torch.full((1, 1), float("nan")).expand(plain.weight.shape)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """`rows` (..., in_features) -> (..., out_features)."""
        found: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
            rows, self._packed, self.bias, "none", [], ""
        )
        return found


def pack_linears(model: Any) -> None:
    """Let each plain linear layer of `model` that holds 32-bit numbers on the CPU take up its
    packed form, one after the other, so that memory holds one of them twice at most. A matrix
    shared with an embedding table stays there as well. Does nothing without oneDNN."""
    if not torch.backends.mkldnn.is_available():
        return
    # Parents and names alone: a list of the layers would keep each to the end.
    parents = [each for each in model.modules() if not isinstance(each, torch.nn.Linear)]
    for parent in parents:
        for name in [name for name, layer in parent.named_children() if _plain(layer)]:
            setattr(parent, name, PackedLinear(getattr(parent, name)))


def _plain(layer: torch.nn.Module) -> bool:
    if type(layer) is not torch.nn.Linear:
        return False
    return bool(layer.weight.device.type == "cpu" and layer.weight.dtype == torch.float32)
