"""What is said of a model's files, beside what the libraries themselves make of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from serve.models.files import folder_fault

pytestmark = pytest.mark.slow

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
Change = Callable[[Path], Any]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of a tiny model: `whole`, `parts` with its weights in several files, and `modules`,
    of sentence-transformers."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Dense, Pooling, Transformer
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    where = tmp_path_factory.mktemp("models")
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    model = BertModel(BertConfig(vocab_size=10, hidden_size=8, **sizes))
    words = Tokenizer(WordLevel({"[PAD]": 0, "[UNK]": 1}, unk_token="[UNK]"))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]"
    )
    for name, size in (("whole", "1GB"), ("parts", "1KB")):
        model.save_pretrained(where / name, max_shard_size=size)
        tokenizer.save_pretrained(where / name)
    torch.save(model.state_dict(), where / "weights.bin")
    modules = [Transformer(str(where / "whole")), Pooling(8), Dense(8, 4)]
    SentenceTransformer(modules=modules, device="cpu").save(str(where / "modules"))
    return where


def load(folder: Path, *, modules: bool) -> Any:
    """By the library."""
    if modules:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(str(folder), device="cpu")
    from transformers import AutoModel

    return AutoModel.from_pretrained(folder)


def wrote(name: str, content: bytes = POINTER) -> Change:
    """A change: this file has this content."""
    return lambda folder: (folder / name).write_bytes(content)


def cut(name: str, source: str = "") -> Change:
    """A change: this file, or a copy of `source` under this name, lacks its end."""
    return lambda folder: (folder / name).write_bytes((folder / (source or name)).read_bytes()[:-4])


def told(name: str, **settings: Any) -> Change:
    """A change: this file of JSON says so, too."""

    def change(folder: Path) -> None:
        known = json.loads((folder / name).read_bytes()) if (folder / name).exists() else {}
        (folder / name).write_text(json.dumps({**known, **settings}))

    return change


def only_bin(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    shutil.copy(folder.parent / "weights.bin", folder / "pytorch_model.bin")


def renamed(name: str) -> Change:
    return lambda folder: (folder / "model.safetensors").rename(folder / name)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("whole", [told("config.json", limit=float("inf"))]),
        ("whole", [wrote("pytorch_model.bin")]),
        ("whole", [wrote("training_args.bin")]),
        ("whole", [cut("model.fp16.safetensors", "model.safetensors")]),
        ("whole", [cut("consolidated.safetensors", "model.safetensors")]),
        ("whole", [wrote("model.safetensors.index.json", b"{}")]),
        ("whole", [only_bin, wrote("model.fp16.safetensors")]),
        (
            "whole",
            [renamed("a.safetensors"), told("config.json", transformers_weights="a.safetensors")],
        ),
        ("parts", [wrote("pytorch_model.bin"), wrote("model-9.safetensors")]),
        ("modules", [wrote("pytorch_model.bin"), wrote("2_Dense/pytorch_model.bin")]),
        ("modules", [wrote("1_Pooling/pytorch_model.bin"), wrote("1_Pooling/model.safetensors")]),
        (
            "modules",
            [
                cut("model.safetensors.gone", "model.safetensors"),
                renamed("model.fp16.safetensors"),
                told("sentence_bert_config.json", model_args={"variant": "fp16"}),
            ],
        ),
    ],
)
def test_what_a_library_loads_has_no_fault(
    models: Path, tmp_path: Path, name: str, changes: list[Change]
) -> None:
    folder, modules = changed(models, tmp_path, name, changes)
    assert load(folder, modules=modules) is not None
    assert folder_fault(folder, modules=modules) == ""


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("whole", [cut("model.safetensors")], "model.safetensors has"),
        ("whole", [wrote("model.safetensors")], "run `git lfs pull`"),
        ("whole", [only_bin, wrote("pytorch_model.bin")], "run `git lfs pull`"),
        ("whole", [renamed("model.fp16.safetensors")], "has no weights"),
        (
            "parts",
            [lambda folder: last_part(folder).unlink()],
            "which model.safetensors.index",
        ),
        ("parts", [lambda folder: last_part(folder).write_bytes(POINTER)], "run `git lfs pull`"),
        ("modules", [cut("2_Dense/model.safetensors")], "2_Dense/model.safetensors has"),
        ("modules", [wrote("modules.json", b"[")], "modules.json is no JSON"),
        ("modules", [cut("model.safetensors")], "model.safetensors has"),
    ],
)
def test_what_has_a_fault_no_library_loads(
    models: Path, tmp_path: Path, name: str, changes: list[Change], expected: str
) -> None:
    folder, modules = changed(models, tmp_path, name, changes)
    assert expected in folder_fault(folder, modules=modules)
    with pytest.raises(Exception):  # noqa: B017, PT011 - of whichever library reads the file
        load(folder, modules=modules)


def test_transformers_reads_no_modules(models: Path, tmp_path: Path) -> None:
    folder, _ = changed(models, tmp_path, "modules", [wrote("2_Dense/model.safetensors")])
    assert load(folder, modules=False) is not None
    assert folder_fault(folder, modules=False) == ""


def last_part(folder: Path) -> Path:
    return max(folder.glob("model-*.safetensors"))


def changed(models: Path, where: Path, name: str, changes: list[Change]) -> tuple[Path, bool]:
    """A copy with these changes, and whether it is of modules."""
    folder = where / name
    shutil.copytree(models / name, folder)
    shutil.copy(models / "weights.bin", where)
    for change in changes:
        change(folder)
    return folder, name == "modules"
