"""When a provider that does not answer is given up. Pure.

Invariant: waits that the provider itself asked for never count as silence.
"""

from __future__ import annotations

from job.local_model import LocalProvider
from serve.ask.ask import Asker
from serve.ask.errors import AskError, Misconfigured

PATIENCE_SECONDS = 600.0
FIRST_PATIENCE_SECONDS = 120.0
"""A provider that answers nothing at all for so long ends the run early: after it has answered
before, or when it never has."""
UNREACHABLE_SECONDS = 10.0
"""A URL where nobody ever was, tried for so long, is a wrong one."""


def reason_to_give_up(asker: Asker, answered_before: bool, now: float) -> AskError | str | None:
    """Why the run should stop at `now` (seconds of the monotonic clock); None: go on."""
    silent = now - asker.heard
    if asker.unreachable and not answered_before and silent > UNREACHABLE_SECONDS:
        return Misconfigured(asker.unreachable)
    # A model of the cluster is there, and as slow as it is.
    patient = answered_before or isinstance(asker.provider, LocalProvider)
    if silent > (PATIENCE_SECONDS if patient else FIRST_PATIENCE_SECONDS):
        return f"{asker.provider.base_url} answered nothing for {silent:.0f} s"
    return None
