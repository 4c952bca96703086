"""The Ray cluster a run uses: one of its own on this machine, or the one it was sent to.

Invariant: a laptop run never joins a cluster that happens to be running; nothing of it listens on
other than the loopback interface; the environment (keys in it) is inherited, never passed along.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import ray
from ray.data import DataContext
from ray.util.annotations import RayDeprecationWarning

OBJECT_STORE_BYTES = 512 * 2**20
"""Of a cluster of our own: some 30 times the blocks in flight."""
BLOCK_BYTES = 2 * 2**20
"""Handed from station to station at once: half a second of reading. By Ray's default of 128 MB a
slice would be read to its end before the first of its records is asked, and be held whole by each
station."""

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # A late look at an actor must fail, not start a second cluster.
    "RAY_ENABLE_AUTO_CONNECT": "0",
}


@contextmanager
def cluster() -> Iterator[None]:
    """Connect to `RAY_ADDRESS` (set by `ray job submit` too), else start a cluster of our own for
    the length of the block."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    warnings.filterwarnings("ignore", category=RayDeprecationWarning)
    address = os.environ.get("RAY_ADDRESS")
    if address:
        ray.init(
            address=address, namespace="fupan", log_to_driver=False, logging_level=logging.ERROR
        )
    else:
        with _children_deaf_to_sigterm():
            ray.init(
                address="local",
                namespace="fupan",
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=OBJECT_STORE_BYTES,
                _node_ip_address="127.0.0.1",
            )
    _set_up_ray_data()
    try:
        with _quiet_native_code():
            yield
    finally:
        ray.shutdown()


@contextmanager
def _children_deaf_to_sigterm() -> Iterator[None]:
    """Processes started in the block inherit a mask without SIGTERM. `timeout` and supervisors send
    it to the whole process group: the command means to end in order, with its cluster alive."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _set_up_ray_data() -> None:
    """The command shows its own progress and tells its own errors."""
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.enable_operator_progress_bars = False
    context.print_on_execution_start = False
    context.target_max_block_size = BLOCK_BYTES
    # Else a disk that is full arrives as a wrapper that has lost what happened.
    context.raise_original_map_exception = True
    for name in ("ray.data", "ray"):
        logging.getLogger(name).setLevel(logging.ERROR)


@contextmanager
def _quiet_native_code() -> Iterator[None]:
    """During the block only Python writes to stderr. Ray's native code prints to descriptor 2 what
    is in its session's log files anyhow, into the middle of the progress."""
    sys.stderr.flush()
    real, shown = os.dup(2), sys.stderr
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    sys.stderr = os.fdopen(os.dup(real), "w", buffering=1, errors="backslashreplace")
    try:
        yield
    finally:
        sys.stderr.close()
        sys.stderr = shown
        os.dup2(real, 2)
        os.close(real)
