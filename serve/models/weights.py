"""Why a model cannot be loaded, and what to do: from its files, before anything of it is loaded,
and from what its library raised.

Invariant: one line, whatever the libraries say; what a library would load is never found fault
with.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import orjson

GGUF: Final = ".gguf"
_CONFIGS: Final = ("config.json", "modules.json", "adapter_config.json")
"""One of which every model's folder has: transformers', sentence-transformers', an adapter's."""
_CACHES: Final = ("SENTENCE_TRANSFORMERS_HOME", "TRANSFORMERS_CACHE")
"""Variables that name further places of downloaded models."""
_POINTER: Final = b"version https://git-lfs"
_MEMORY: Final = re.compile(
    "out of memory|can't allocate memory|cannot allocate memory|^MemoryError", re.IGNORECASE
)
"""What torch, the system and Python say where there is none left."""
_MOST_SAID: Final = 600
"""Characters of what a library says; some list all models that they know."""
_AGAIN: Final = "it is damaged, or was not copied whole: fetch it again"
_SEEN_FROM: Final = "A relative path is seen from the folder of fupan.yaml"


def fault(name: str) -> str:
    """What is wrong with the files of the model `name`, as far as they tell without being loaded,
    and what to do; "" where nothing is. `name`: a folder, a GGUF file, or a name at Hugging Face,
    which is asked where this machine has no such model and may ask."""
    path = Path(name)
    if path.suffix == GGUF:
        return _gguf_fault(path)
    if path.is_dir():
        return _folder_fault(path)
    if path.exists():
        return f"{name} is a file, and neither a folder nor a {GGUF} file: name the model's folder"
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        return f"there is no folder {name}: correct the path. {_SEEN_FROM}"
    return _named_fault(name)


def said(name: str, error: BaseException) -> str:
    """What `error`, raised as the model `name` was loaded, says, and what to do where it does not
    say so itself."""
    told = one_line(str(error)) or type(error).__name__
    if isinstance(error, MemoryError) or of_memory(told):
        return too_large(told)
    if Path(name).suffix == GGUF:
        return f"the file cannot be read ({told}): {_AGAIN}, or another conversion of the model"
    return told


def of_memory(told: str) -> bool:
    """Whether an error that says this found too little memory."""
    return _MEMORY.search(told) is not None


def too_large(told: str) -> str:
    """What to do where too little memory was found. `told`: what the error says."""
    return (
        f"it does not fit into memory ({told}): choose a smaller model or context, or a larger "
        "machine, GPU or share of one (gpus)"
    )


def one_line(text: str) -> str:
    """`text` in one line, its end cut off where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _MOST_SAID else f"{line[:_MOST_SAID]} ..."


def _gguf_fault(path: Path) -> str:
    if not path.exists():
        return f"there is no file {path}: correct the path. {_SEEN_FROM}"
    try:
        with path.open("rb") as file:
            begin = file.read(len(_POINTER))
    except OSError as error:
        return _unreadable(path, error)
    if begin == _POINTER:
        return _pointer(path)
    return "" if begin[:4] == b"GGUF" else f"{path} is no GGUF file: {_AGAIN}"


def _folder_fault(folder: Path) -> str:
    try:
        names = {each.name for each in folder.iterdir()}
        found = [folder / each for each in _CONFIGS if each in names]
        if not found:
            return _no_model(folder, names)
        for config in found:
            json.loads(config.read_bytes())  # some have NaN and Infinity
        weights = sorted({*folder.glob("*.safetensors"), *folder.glob("*.bin")})
        if not weights and "modules.json" not in names:
            return (
                f"{folder} has no weights (*.safetensors or *.bin): it was not copied whole, fetch "
                "it again"
            )
        return next(filter(None, map(_weights_fault, weights)), "")
    except ValueError as error:
        return f"{config} is no JSON ({error}): {_AGAIN}"
    except OSError as error:
        return _unreadable(folder, error)


def _no_model(folder: Path, names: set[str]) -> str:
    files = sorted(each for each in names if each.endswith(GGUF))
    if files:
        return f"{folder} holds GGUF files: name one of them, such as {folder / files[0]}"
    return (
        f"{folder} has no {_CONFIGS[0]}, so it is no model's folder: name the one that has the "
        "model's config.json"
    )


def _weights_fault(file: Path) -> str:
    """Of a file of weights. Safetensors say in their head how long they are."""
    size = file.stat().st_size
    with file.open("rb") as opened:
        begin = opened.read(len(_POINTER))
        if begin == _POINTER:
            return _pointer(file)
        if file.suffix != ".safetensors" or not file.name.startswith("model"):
            return ""
        head = int.from_bytes(begin[:8], "little")
        if head > size - 8:
            return f"{file} ends before its weights begin: {_AGAIN}"
        opened.seek(8)
        try:
            tensors = orjson.loads(opened.read(head))
            ends = [each["data_offsets"][1] for each in tensors.values() if "data_offsets" in each]
        except (ValueError, LookupError, TypeError, AttributeError):
            return f"{file} has no head that can be read: {_AGAIN}"
    whole = 8 + head + max(ends, default=0)
    return f"{file} has {size:,} of {whole:,} bytes: {_AGAIN}" if size < whole else ""


def _named_fault(name: str) -> str:
    """Of a model that is on this machine, or can be fetched from Hugging Face."""
    # It takes a moment, and only those need it who name such a model.
    from huggingface_hub import constants, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    # sentence-transformers has some without a slash in a place of its own.
    repositories = [name] if "/" in name else [f"sentence-transformers/{name}", name]
    caches = [None, *filter(None, map(os.environ.get, _CACHES))]
    try:
        kept = [
            found
            for each in repositories
            for config in _CONFIGS
            for cache in caches
            if isinstance(found := try_to_load_from_cache(each, config, cache), str)
        ]
    except HFValidationError:
        return f"there is no folder {name}, and it is no name of a model at Hugging Face"
    if constants.HF_HUB_OFFLINE:
        return _folder_fault(Path(kept[0]).parent) if kept else _not_here(name)
    return "" if kept else _absent(name, repositories)


def _not_here(name: str) -> str:
    return (
        f"there is neither a folder {name} nor a downloaded model of that name on its machine, and "
        "HF_HUB_OFFLINE=1 keeps it from being fetched: correct the name, or fetch it there once, "
        f"by `hf download {name}`. {_SEEN_FROM}"
    )


def _absent(name: str, repositories: Sequence[str]) -> str:
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RemoteEntryNotFoundError,
        RepositoryNotFoundError,
    )

    for repository in repositories:
        try:
            hf_hub_download(repository, _CONFIGS[0])
        except (RepositoryNotFoundError, GatedRepoError):
            continue
        except RemoteEntryNotFoundError:
            return ""  # what it has instead the library knows
        except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
            return (
                f"there is neither a folder {name} nor a downloaded model of that name on its "
                f"machine, and {constants.ENDPOINT} does not answer ({_root(error)}): correct the "
                "name, or see to the network"
            )
        return ""
    return (
        f"there is no folder {name}, and {constants.ENDPOINT} shows no model of that name: correct "
        "it; a private or gated one is shown to an account's HF_TOKEN, in the environment of its "
        "machine"
    )


def _root(error: BaseException) -> str:
    """What was wrong first, where one error came of another."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return one_line(str(error)) or type(error).__name__


def _pointer(file: Path) -> str:
    return f"{file} is only a pointer of Git LFS to the weights: run `git lfs pull` in its folder"


def _unreadable(path: Path, error: OSError) -> str:
    return f"{path} cannot be read: {error.strerror or error}"
