"""Packed matrices: the plain ones' numbers, and none for whom they are not meant."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("rows", [(1,), (3,), (1, 40), (2, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_packed_layer_gives_the_numbers_of_the_plain_one(
    rows: tuple[int, ...], bias: bool
) -> None:
    import torch

    from serve.generation.packed import PackedLinear

    torch.manual_seed(0)
    plain = torch.nn.Linear(48, 80, bias=bias)
    given = torch.randn(*rows, 48)
    with torch.inference_mode():
        assert torch.allclose(PackedLinear(plain)(given), plain(given), atol=1e-5)


def test_what_is_no_plain_layer_of_32_bits_stays_and_a_shared_table_does_too() -> None:
    import torch

    from serve.generation.packed import PackedLinear, pack_linears

    odd = type("Odd", (torch.nn.Linear,), {})

    model = torch.nn.ModuleDict(
        {
            "table": torch.nn.Embedding(7, 8),
            "head": torch.nn.Linear(8, 7, bias=False),
            "short": torch.nn.Linear(8, 8, dtype=torch.bfloat16),
            "odd": odd(8, 8),
            "inner": torch.nn.Sequential(torch.nn.Linear(8, 8)),
        }
    )
    model["head"].weight = model["table"].weight
    looked_up = model["table"](torch.tensor([3]))
    pack_linears(model)
    kinds = {name: type(layer) for name, layer in model.named_modules()}
    assert kinds["head"] is kinds["inner.0"] is PackedLinear
    assert kinds["short"] is torch.nn.Linear
    assert kinds["odd"] is odd
    assert torch.equal(model["table"](torch.tensor([3])), looked_up)


def test_a_model_that_computes_with_a_packed_weight_itself_gets_no_number() -> None:
    import torch

    from serve.generation.packed import PackedLinear

    layer = PackedLinear(torch.nn.Linear(4, 6))
    assert (layer.weight.shape, layer.weight.dtype) == ((6, 4), torch.float32)
    assert torch.nn.functional.linear(torch.ones(4), layer.weight).isnan().all()


def test_no_more_than_one_matrix_is_held_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    import weakref

    import torch

    from serve.generation import packed

    model = torch.nn.Sequential(
        *(
            torch.nn.ModuleDict({"up": torch.nn.Linear(8, 8), "down": torch.nn.Linear(8, 8)})
            for _ in range(3)
        )
    )
    plain = [weakref.ref(each) for each in model.modules() if type(each) is torch.nn.Linear]
    alive = []

    class Watched(packed.PackedLinear):
        def __init__(self, layer: torch.nn.Linear) -> None:
            alive.append(sum(each() is not None for each in plain))
            super().__init__(layer)

    monkeypatch.setattr(packed, "PackedLinear", Watched)
    packed.pack_linears(model)
    assert alive == [6, 5, 4, 3, 2, 1]
    assert not any(each() for each in plain)
