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

    SlotForward(_model(kind), 4, 32).take_over(TOKENS)
    SlotForward(_model(kind), 1, 32).take_over(TOKENS)


@pytest.mark.parametrize(
    ("kind", "more"), [("mistral", {"sliding_window": 4}), ("gemma2", {}), ("gpt2", {})]
)
def test_one_that_looks_back_otherwise_is_found_out(kind: str, more: dict[str, Any]) -> None:
    from serve.generation.forward import SlotForward

    with pytest.raises((NotImplementedError, RuntimeError)):
        SlotForward(_model(kind, **more), 4, 32).take_over(TOKENS)


def test_a_copy_holds_what_its_source_held() -> None:
    import numpy as np

    from serve.generation.forward import SlotForward
    from serve.generation.schedule import Copy, Plan, Work

    forward = SlotForward(_model("llama"), 2, 32)
    forward.take_over(TOKENS)
    whole = forward.run(Plan([], [Work(0, 0, TOKENS, True)]))
    copied = forward.run(
        Plan([Copy(0, 1, 5)], [Work(0, 8, [3], False), Work(1, 5, TOKENS[5:], True)])
    )
    assert np.allclose(whole, copied, atol=1e-5)


def test_a_slot_that_held_no_numbers_is_as_good_as_new_once_it_is_cleared() -> None:
    import numpy as np

    from serve.generation.forward import SlotForward
    from serve.generation.schedule import Plan, Work

    forward = SlotForward(_model("llama"), 2, 32)
    forward.take_over(TOKENS)
    beside = Work(1, 0, TOKENS, True)
    works = [Work(0, 0, TOKENS[:2], True), beside]
    expected = forward.run(Plan([], works))
    for layer in (*forward._keys, *forward._values):
        layer[0] = float("nan")
    assert np.isnan(forward.run(Plan([], [Work(0, 4, [3], True), beside]))[0]).all()
    assert np.allclose(forward.run(Plan([], works, (0,))), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "rope"),
    [
        ("llama", {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10_000.0}),
        (
            "phi3",
            {
                "rope_type": "longrope",
                "rope_theta": 10_000.0,
                "short_factor": [1.0] * 8,
                "long_factor": [2.0] * 8,
                "original_max_position_embeddings": 64,
            },
        ),
    ],
)
def test_a_context_beyond_which_places_go_by_the_longest_stream_is_refused(
    kind: str, rope: dict[str, Any]
) -> None:
    from serve.generation.errors import GenerationModelError
    from serve.generation.load import check_context

    config = _model(kind, rope_parameters=rope, max_position_embeddings=64).config
    check_context("m", config, 64)
    config.max_position_embeddings = 256
    config.rope_parameters["original_max_position_embeddings"] = 64
    check_context("m", config, 64)
    with pytest.raises(GenerationModelError, match=r"'m' reads at most 64 tokens here .rope type"):
        check_context("m", config, 65)
    with pytest.raises(GenerationModelError, match="at most 512"):
        check_context("m", _model("llama", max_position_embeddings=512).config, 513)


def test_whatever_is_odd_about_a_model_is_said_with_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from types import SimpleNamespace

    from serve.generation import load
    from serve.generation.errors import GenerationModelError

    odd = SimpleNamespace(eos_token_id=2, chat_template="{{")  # it has no words
    monkeypatch.setattr(load, "read_model", lambda *_: (_model("llama"), odd))
    with pytest.raises(GenerationModelError, match=r"'some/model' \(llama\) is built"):
        load.load("some/model", 32, 2)
