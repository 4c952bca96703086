"""The Ray cluster a run uses: one of its own on this machine, or the one it was sent to.

Invariant: a laptop run never joins a cluster that happens to be running; nothing of it listens on
other than the loopback interface; the environment (keys in it) is inherited, never passed along.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

import ray
from ray.data import DataContext

OBJECT_STORE_BYTES = 512 * 2**20
"""Of a cluster of our own: some 30 times the blocks in flight."""


@contextmanager
def cluster() -> Iterator[None]:
    """Connect to `RAY_ADDRESS` (set by `ray job submit` too), else start a cluster of our own for
    the length of the block."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = os.environ.get("RAY_ADDRESS")
    if address:
        ray.init(address=address, namespace="fupan", log_to_driver=False)
    else:
        ray.init(
            address="local",
            namespace="fupan",
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=OBJECT_STORE_BYTES,
            _node_ip_address="127.0.0.1",
        )
    _quiet_ray_data()
    try:
        yield
    finally:
        ray.shutdown()


def _quiet_ray_data() -> None:
    """The command shows its own progress."""
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.enable_operator_progress_bars = False
    context.print_on_execution_start = False
    for name in ("ray.data", "ray"):
        logging.getLogger(name).setLevel(logging.ERROR)
