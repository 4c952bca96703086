"""From which similarity on two questions may be the same, for each embedding model and language.

Invariant: only a model that was calibrated has thresholds, and only for the languages in which it
tells questions apart; no other is used.

`thresholds.json` beside this file holds them with the date and the pairs they come from. Similarity
alone never decides (`serve.cache.agree` does): of questions that agree, these are the ones that
are alike enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import PurePath
from typing import Literal

import orjson

Language = Literal["zh", "en"]
TABLE = "thresholds.json"
_CJK = ("\u3400", "\u9fff")
_LATIN_ENDS = "\u024f"


class NotCalibrated(Exception):
    """The semantic cache cannot use a model: says which and how to calibrate it."""


def language_of(text: str) -> Language | None:
    """Chinese where it has a Chinese character, else English where all letters are Latin; None for
    scripts that `serve.cache.agree` does not read."""
    if text.isascii():
        return "en"
    chinese = False
    for letter in text:
        if _CJK[0] <= letter <= _CJK[1]:
            chinese = True
        elif letter > _LATIN_ENDS and letter.isalpha() and not "\uff21" <= letter <= "\uff5a":
            return None
    return "zh" if chinese else "en"


def thresholds_of(model: str) -> Mapping[Language, float]:
    """The thresholds of a model by its name or path. Raises NotCalibrated."""
    table = orjson.loads(files(__package__).joinpath(TABLE).read_bytes())
    path = PurePath(model).parts
    for name, entry in table["models"].items():
        for known in (name, *entry["also"]):
            parts = PurePath(known).parts
            if path[-len(parts) :] == parts:
                found: Mapping[Language, float] = entry["thresholds"]
                return found
    raise NotCalibrated(
        f"the semantic cache cannot compare questions with embedding model {model!r}: no threshold "
        f"is known for it. Calibrate it, in a checkout of fupan: "
        f"python -m scripts.cache_calibration {model} --write; or set serve.cache.embedding to "
        f"`bundled`"
    )
