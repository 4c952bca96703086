"""What Ray tells of a process that failed, as one line for whoever started it. Pure.

Invariant: one line without a traceback, and with the whole of the error that was raised.
"""

from __future__ import annotations

import re

from serve.models.weights import of_memory, one_line, too_large

ERROR = "Error:\n"
"""Of what Ray Serve says of a deployment: what comes before a replica's own error."""
_DIED = re.compile(
    r"ActorDied|actor died unexpectedly|^OutOfMemoryError\(|node running low on memory"
)
"""Said of a process that ended, also where Ray ended it for want of memory. torch has an error of
the same name, which ends none."""
_DETAIL = re.compile(r"Worker exit detail: ([^\"]+)")
"""What Ray knows of the end of a process."""
_OURS = re.compile(r"serve\.[\w.]+: ")
"""The class of an error of our own, whose words say all."""


def reason_in(told: str) -> str:
    """Of what Ray says of an actor or a deployment, the error that its process raised: what comes
    behind the traceback."""
    lines = told.partition(ERROR)[2].splitlines() or told.splitlines()
    frames = [place for place, line in enumerate(lines) if line.startswith("  File ")]
    behind = lines[frames[-1] + 1 :] if frames else lines
    while behind and (not behind[0].strip() or (frames and behind[0].startswith(" "))):
        behind = behind[1:]
    raised = " ".join(behind)
    if ours := _OURS.match(raised):
        return one_line(raised[ours.end() :])
    reason = one_line(raised)
    if _DIED.search(reason):
        if detail := _DETAIL.search(reason):
            reason = detail[1]
        return (
            "its process ended while it was loading, most often because the machine has too little "
            f"memory for it: choose a smaller model, or a larger machine ({reason})"
        )
    if of_memory(reason):
        return too_large(reason)
    return reason or "no reason is known; the log of its process may have one"
