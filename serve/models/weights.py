"""Why a model cannot be loaded, and what to do: from its files, before anything of it is loaded,
and from what its library raised.

Invariant: one line, whatever the libraries say; what a library would load is never found fault
with.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from serve.models.files import CONFIGS, DAMAGED, GGUF, SEEN_FROM, folder_fault, gguf_fault

HUB_SECONDS: Final = 5.0
"""After which Hugging Face, asked whether it has a model, does not answer."""
_CACHES: Final = ("SENTENCE_TRANSFORMERS_HOME", "TRANSFORMERS_CACHE")
"""Variables that name further places of downloaded models."""
_MEMORY: Final = re.compile(
    "out of memory|can't allocate memory|cannot allocate memory|^MemoryError", re.IGNORECASE
)
"""What torch, the system and Python say where there is none left."""
_MOST_SAID: Final = 600
"""Characters of what a library says; some list all models that they know."""


def fault(name: str, *, modules: bool) -> str:
    """What is wrong with the files of the model `name`, as far as they tell without being loaded,
    and what to do; "" where nothing is. `name`: a folder, a GGUF file, or a name at Hugging Face,
    which is asked where this machine has no such model and may ask. `modules`: whether
    sentence-transformers loads it, not transformers."""
    path = Path(name)
    if path.suffix == GGUF:
        return gguf_fault(path)
    if path.is_dir():
        return folder_fault(path, modules=modules)
    if path.exists():
        return f"{name} is a file, and neither a folder nor a {GGUF} file: name the model's folder"
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        return f"there is no folder {name}: correct the path. {SEEN_FROM}"
    return _named_fault(name, modules)


def said(name: str, error: BaseException) -> str:
    """What `error`, raised as the model `name` was loaded, says, and what to do where it does not
    say so itself."""
    told = one_line(str(error)) or type(error).__name__
    if isinstance(error, MemoryError) or of_memory(told):
        return too_large(told)
    if Path(name).suffix == GGUF:
        return f"the file cannot be read ({told}): {DAMAGED}, or another conversion of the model"
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


def _named_fault(name: str, modules: bool) -> str:
    """Of a model that is on this machine, or can be fetched from Hugging Face."""
    # It takes a moment, and only those need it who name such a model.
    from huggingface_hub import constants, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    # sentence-transformers has some without a slash in a place of its own.
    own = [f"sentence-transformers/{name}"] if modules and "/" not in name else []
    repositories = [*own, name]
    caches = [None, *filter(None, map(os.environ.get, _CACHES))]
    try:
        kept = {
            Path(found).parent
            for each in repositories
            for config in CONFIGS
            for cache in caches
            if isinstance(found := try_to_load_from_cache(each, config, cache), str)
        }
    except HFValidationError:
        return f"there is no folder {name}, and it is no name of a model at Hugging Face"
    if constants.HF_HUB_OFFLINE:
        # The library looks into one of them.
        faults = [folder_fault(each, modules=modules) for each in sorted(kept)]
        return (faults[0] if all(faults) else "") if faults else _not_here(name)
    return "" if kept else _absent(name, repositories)


def _not_here(name: str) -> str:
    return (
        f"there is neither a folder {name} nor a downloaded model of that name on its machine, and "
        "HF_HUB_OFFLINE=1 keeps it from being fetched: correct the name, or fetch it there once, "
        f"by `hf download {name}`. {SEEN_FROM}"
    )


def _absent(name: str, repositories: Sequence[str]) -> str:
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    for repository in repositories:
        try:
            # Asked once: downloading tries again for 23 seconds before it says anything.
            get_hf_file_metadata(hf_hub_url(repository, CONFIGS[0]), timeout=HUB_SECONDS)
        except RepositoryNotFoundError:
            continue
        except HfHubHTTPError:
            return ""  # it answers: whether to try again, and what is wrong, the library knows
        except Exception as error:  # of whatever carries the question
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
