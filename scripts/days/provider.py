"""The truth file of the simulated provider: which phrase means what, and how to word the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from scripts.days.causes import Topic, load_causes, load_praise
from scripts.days.compose import filler


def poison_phrase() -> str:
    """The words in a request that make the provider refuse all of it."""
    return str(filler()["poison"]["phrase"])


def _cause(topic: Topic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "phrases": topic.phrases(),
        "outcome": topic.outcome,
        "severity": topic.severity,
        "answers": list(topic.answers),
    }


def provider_truth() -> dict[str, Any]:
    """Causes and praise in the form `serve.simulated_truth.Truth` reads."""
    topics = (*load_causes(), *load_praise())
    return {"causes": [_cause(t) for t in topics], "default": {"outcome": "normal"}}


def write_provider_truth(path: Path) -> None:
    """Write `provider_truth` as indented JSON."""
    path.write_bytes(orjson.dumps(provider_truth(), option=orjson.OPT_INDENT_2) + b"\n")
