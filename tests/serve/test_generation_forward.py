"""Families of models, with weights by chance: run as the library runs them, or refused."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.slow

TOKENS = [5, 6, 7, 8, 9, 10, 11, 12]


def _model(kind: str, **more: Any) -> Any:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    sizes = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 96, "head_dim": 16}
    heads = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = AutoConfig.for_model(kind, **sizes, **heads, **special, **more)
    return AutoModelForCausalLM.from_config(config).eval()


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "phi3"])
def test_a_model_runs_over_slots_as_it_does_by_itself(kind: str) -> None:
    from serve.generation.forward import SlotForward

    SlotForward(_model(kind), 4, 32).check(TOKENS)
    SlotForward(_model(kind), 1, 32).check(TOKENS)


@pytest.mark.parametrize(
    ("kind", "more"), [("mistral", {"sliding_window": 4}), ("gemma2", {}), ("gpt2", {})]
)
def test_one_that_looks_back_otherwise_is_found_out(kind: str, more: dict[str, Any]) -> None:
    from serve.generation.forward import SlotForward

    with pytest.raises((NotImplementedError, RuntimeError)):
        SlotForward(_model(kind, **more), 4, 32).check(TOKENS)


def test_a_copy_holds_what_its_source_held() -> None:
    import numpy as np

    from serve.generation.forward import SlotForward
    from serve.generation.schedule import Copy, Plan, Work

    forward = SlotForward(_model("llama"), 2, 32)
    forward.check(TOKENS)
    whole = forward.run(Plan([], [Work(0, 0, TOKENS, True)]))
    copied = forward.run(
        Plan([Copy(0, 1, 5)], [Work(0, 8, [3], False), Work(1, 5, TOKENS[5:], True)])
    )
    assert np.allclose(whole, copied, atol=1e-5)
