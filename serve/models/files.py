"""Why the files of a model cannot be loaded, from a look at them, and what to do.

Invariant: looked at is only what the library that loads the model reads, so that what it would load
is never found fault with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import Any, Final

import orjson

GGUF: Final = ".gguf"
CONFIGS: Final = ("config.json", "modules.json", "adapter_config.json")
"""One of which every model's folder has: transformers', sentence-transformers', an adapter's."""
SEEN_FROM: Final = "A relative path is seen from the folder of fupan.yaml"
DAMAGED: Final = "it is damaged, or was not copied whole: fetch it again"
_CONFIG, _MODULES, _ADAPTER_CONFIG = CONFIGS
_SAFETENSORS: Final = ".safetensors"
_INDEX: Final = ".index.json"
"""Ends the names of files that name files of weights."""
_MODULE_WEIGHTS: Final = ("model.safetensors", "pytorch_model.bin")
_WEIGHTS: Final = tuple(file + end for file in _MODULE_WEIGHTS for end in ("", _INDEX))
_ADAPTER_WEIGHTS: Final = ("adapter_model.safetensors", "adapter_model.bin")
"""Each time, the first that is there is read."""
_TRANSFORMER: Final = "Transformer"
_WITH_WEIGHTS: Final = {
    "CNN",
    "Dense",
    "LSTM",
    "LayerNorm",
    "StaticEmbedding",
    "WeightedLayerPooling",
    "WordEmbeddings",
}
"""Classes of modules of sentence-transformers that read weights of their own."""
_POINTER: Final = b"version https://git-lfs"
_LONGEST_HEAD: Final = 100_000_000
"""Bytes; safetensors reads none that is longer."""


class _Fault(Exception):
    """Says what is wrong, and what to do."""


def gguf_fault(path: Path) -> str:
    """What is wrong with a GGUF file; "" where nothing is seen to be."""
    if not path.exists():
        return f"there is no file {path}: correct the path. {SEEN_FROM}"
    try:
        with path.open("rb") as file:
            begin = file.read(len(_POINTER))
    except OSError as error:
        return _unreadable(path, error)
    if begin == _POINTER:
        return _pointer(path)
    return "" if begin[:4] == b"GGUF" else f"{path} is no GGUF file: {DAMAGED}"


def folder_fault(folder: Path, *, modules: bool) -> str:
    """What is wrong with a model's folder; "" where nothing is seen to be. `modules`: whether
    sentence-transformers loads it, which goes by a list of modules where there is one; else
    transformers does."""
    try:
        names = {each.name for each in folder.iterdir()}
        if not names.intersection(CONFIGS):
            return _no_model(folder, names)
        if modules and _MODULES in names:
            _check_modules(folder)
        else:
            _check_transformer(folder)
    except _Fault as fault:
        return str(fault)
    except OSError as error:
        return _unreadable(Path(error.filename or folder), error)
    return ""


def _no_model(folder: Path, names: Iterable[str]) -> str:
    files = sorted(each for each in names if each.endswith(GGUF))
    if files:
        return f"{folder} holds GGUF files: name one of them, such as {folder / files[0]}"
    return (
        f"{folder} has no {_CONFIG}, so it is no model's folder: name the one that has the "
        f"model's {_CONFIG}"
    )


def _check_modules(folder: Path) -> None:
    for path, kind in _modules(_read_json(folder / _MODULES)):
        if kind == _TRANSFORMER:
            if not _chooses(folder / path):
                _check_transformer(folder / path)
        elif kind in _WITH_WEIGHTS and (file := _first(folder / path, _MODULE_WEIGHTS)):
            _check_weights(file)


def _modules(listed: Any) -> list[tuple[PurePath, str]]:
    """The path and the class of each module of the library's own; none where it says itself what is
    wrong."""
    try:
        found = [
            (PurePath(each["path"]), each["type"].rpartition(".")[2])
            for each in listed
            if each["type"].startswith("sentence_transformers.")
        ]
    except (LookupError, TypeError, AttributeError):
        return []
    inside = all(not path.is_absolute() and ".." not in path.parts for path, _ in found)
    return found if inside else []


def _chooses(folder: Path) -> bool:
    """Whether a module may say itself which files transformers reads."""
    settings = [file.read_bytes() for file in folder.glob("sentence_*_config.json")]
    return any(key in each for each in settings for key in (b"model_args", b"model_kwargs"))


def _check_transformer(folder: Path) -> None:
    """Of a folder that transformers reads."""
    names: Sequence[str] = _ADAPTER_WEIGHTS
    if (config := folder / _CONFIG).is_file():
        settings = _read_json(config)
        named = settings.get("transformers_weights") if isinstance(settings, dict) else None
        names = [named] if isinstance(named, str) else _WEIGHTS
    elif (adapter := folder / _ADAPTER_CONFIG).is_file():
        _read_json(adapter)
    else:
        return  # the library says what it wants
    file = _first(folder, names)
    if file is None:
        raise _Fault(
            f"{folder} has no weights ({' or '.join(names)}): it was not copied whole, fetch it "
            "again"
        )
    if file.name.endswith(_INDEX):
        _check_parts(file)
    else:
        _check_weights(file)


def _first(folder: Path, names: Iterable[str]) -> Path | None:
    return next((file for name in names if (file := folder / name).is_file()), None)


def _check_parts(index: Path) -> None:
    try:
        files = [index.parent / each for each in set(_read_json(index)["weight_map"].values())]
    except (LookupError, TypeError, AttributeError):
        raise _Fault(f"{index} names no files of weights: {DAMAGED}") from None
    for file in sorted(files):
        if not file.is_file():
            raise _Fault(f"there is no {file}, which {index.name} names: {DAMAGED}")
        _check_weights(file)


def _check_weights(file: Path) -> None:
    """Of a file of weights. Safetensors say in their head how long they are."""
    size = file.stat().st_size
    with file.open("rb") as opened:
        begin = opened.read(len(_POINTER))
        if begin == _POINTER:
            raise _Fault(_pointer(file))
        if file.suffix != _SAFETENSORS:
            return
        head = int.from_bytes(begin[:8], "little")
        if head > size - 8:
            raise _Fault(f"{file} ends before its weights begin: {DAMAGED}")
        opened.seek(8)
        try:
            tensors = orjson.loads(opened.read(head) if head <= _LONGEST_HEAD else b"")
            ends = [each["data_offsets"][1] for each in tensors.values() if "data_offsets" in each]
            whole = 8 + head + max(ends, default=0)
        except (ValueError, LookupError, TypeError, AttributeError):
            raise _Fault(f"{file} has no head that can be read: {DAMAGED}") from None
    if size < whole:
        raise _Fault(f"{file} has {size:,} of {whole:,} bytes: {DAMAGED}")


def _read_json(file: Path) -> Any:
    content = file.read_bytes()
    if content.startswith(_POINTER):
        raise _Fault(_pointer(file))
    try:
        return json.loads(content)  # some have NaN and Infinity
    except (ValueError, RecursionError) as error:
        raise _Fault(f"{file} is no JSON ({error}): {DAMAGED}") from None


def _pointer(file: Path) -> str:
    return f"{file} is only a pointer of Git LFS: run `git lfs pull` in its folder"


def _unreadable(path: Path, error: OSError) -> str:
    return f"{path} cannot be read: {error.strerror or error}"
