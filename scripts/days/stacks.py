"""Stack traces as Java and Python print them, from made-up class and module names."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from scripts.days.causes import read_words

_METHODS = (
    "submit", "handle", "invoke", "apply", "proceed", "execute", "acquire", "lookup", "render",
    "commit", "dispatch", "resolve",
)  # fmt: skip


@lru_cache(maxsize=1)
def _names() -> dict[str, Any]:
    return dict(read_words("slots.yaml"))


def java_trace(rng: random.Random, service: str, errors: Sequence[str], frames: int) -> str:
    """A trace whose first error was caused by the next, `frames` lines under each."""
    package = f"com.example.{service.split('-')[0]}"
    lines: list[str] = []
    for depth, error in enumerate(errors):
        lines.append(f"Caused by: {error}" if depth else error)
        for _ in range(frames):
            name = rng.choice(_names()["java"])
            place = f"{name}.java:{rng.randint(20, 480)}"
            lines.append(f"\tat {package}.{name}.{rng.choice(_METHODS)}({place})")
        if depth:
            lines.append(f"\t... {rng.randint(8, 60)} more")
    return "\n".join(lines)


def python_trace(rng: random.Random, service: str, errors: Sequence[str], frames: int) -> str:
    """A traceback of `frames` calls that ends with the one error."""
    (error,) = errors
    folder = service.replace("-", "_")
    lines = ["Traceback (most recent call last):"]
    for _ in range(frames):
        module, method = rng.choice(_names()["python"]), rng.choice(_METHODS)
        lines.append(
            f'  File "/srv/{folder}/{module}.py", line {rng.randint(10, 420)}, in {method}'
        )
        lines.append(f"    return self.{rng.choice(_METHODS)}(request)")
    return "\n".join([*lines, error])
