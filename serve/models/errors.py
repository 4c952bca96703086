"""What goes wrong between a model of the cluster and its caller, beyond what the model says itself.

    Unavailable                   (serve/ask/errors.py)
     +- ModelBusy                  its queue is full: the same request is good again after a while
     +- ModelNotLoaded             no replica is there, and none is coming
     |   `- ModelLoading           it is coming, and is not waited for any more
     `- ModelLost                  the replica that was answering ended

Invariant: plain values, which survive pickling between processes.
"""

from __future__ import annotations

from serve.ask.errors import Unavailable

BUSY_SECONDS = 1.0
"""After which a full queue may have room."""


class ModelBusy(Unavailable):
    """As many wait as may. `retry_after`: seconds."""

    sent = False


class ModelNotLoaded(Unavailable):
    """Its application is not deployed, or failed to start, or it cannot be loaded into its pool.
    `retry_after`: seconds after which that is tried again, where it is known. `said` is for the
    client; why is for the logs: it may name files and hosts."""

    sent = False
    said = (
        "it could not be loaded, or is not deployed. Whoever runs this gateway finds the reason in "
        "what `fupan serve` printed, in `serve status`, and in the log of the model's process"
    )


class ModelLoading(ModelNotLoaded):
    """It is being loaded, and whoever asks has somebody else to ask."""

    said = "it is still being loaded. Send the request again in a while"


class ModelLost(Unavailable):
    """The process that was answering ended. Asked again, another one answers."""
