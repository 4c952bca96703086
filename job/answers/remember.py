"""What a run has learned, kept for the next ones when its report is there.

Invariant: nothing here ends a run that is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import ray

from serve.ask.answers_file import BUSY_SECONDS

PATIENCE_SECONDS = BUSY_SECONDS + 5.0
"""For each step: as long as a store that others write to may take, not as long as a dead one."""


def remember(answers: Any, name: str, change: Callable[[bytes | None], bytes]) -> None:
    """Have the store of answers (an actor handle) keep under `name` what `change` makes of what is
    kept there; where that cannot be done, nothing is kept."""
    with suppress(Exception):
        kept = ray.get(answers.learned.remote(name), timeout=PATIENCE_SECONDS)
        ray.get(answers.keep_learned.remote(name, change(kept)), timeout=PATIENCE_SECONDS)
