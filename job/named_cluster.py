"""The Ray cluster that the environment names. Needs no Ray: whoever only looks need not load it."""

from __future__ import annotations

import os
import socket

from job.errors import UsageError
from serve.ask.uris import without_secrets

ADDRESS = "RAY_ADDRESS"
ANSWER_SECONDS = 5.0
"""By which a cluster's port has to answer; Ray itself would look for a minute and more."""


def named_address() -> str | None:
    """The cluster that RAY_ADDRESS names; None for one of our own. Raises UsageError for what is
    no address of a cluster's node, or does not answer."""
    address = os.environ.get(ADDRESS, "")
    if address in ("", "local"):
        return None
    if "://" in address:
        raise UsageError(
            f"{ADDRESS}={without_secrets(address)}: on a node of a cluster use HOST:6379 or auto, "
            "from another machine scripts/submit; unset it to run on this machine alone"
        )
    if address != "auto":
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), ANSWER_SECONDS).close()
        except (OSError, ValueError, OverflowError) as error:
            raise no_cluster(address, error) from error
    return address


def no_cluster(address: str, error: Exception) -> UsageError:
    """What is told where nothing answers at `address`."""
    said = str(error).partition("\n")[0]
    return UsageError(
        f"no Ray cluster answers at {ADDRESS}={address}: {said}. Unset it to run on this machine "
        "alone"
    )
