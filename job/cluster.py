"""The Ray cluster a run uses: one of its own on this machine, or the one it was sent to.

Invariant: a laptop run never joins a cluster that happens to be running; nothing of a cluster of
our own listens on other than the loopback interface; the environment (keys in it) is inherited,
never passed along.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil
import ray
from ray._private import ray_constants, services
from ray._private.node import Node
from ray.data import DataContext
from ray.util.annotations import RayDeprecationWarning

from job.errors import JobError
from job.named_cluster import ANSWER_SECONDS, named_address, no_cluster

OBJECT_STORE_BYTES = 512 * 2**20
"""Of a cluster of our own: some 30 times the blocks in flight."""
BLOCK_BYTES = 2 * 2**20
"""Handed from station to station at once: half a second of reading. By Ray's default of 128 MB a
slice would be read to its end before the first of its records is asked, and be held whole by each
station."""

_IDLE_PROCESSES = ("start_api_server", "start_monitor", "start_log_monitor")

_LOOPBACK = "127.0.0.1"
_LOCAL_HOSTS = (_LOOPBACK, "localhost", "::1", "[::1]")

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # A late look at an actor must fail, not start a second cluster.
    "RAY_ENABLE_AUTO_CONNECT": "0",
}


@contextmanager
def cluster(own: bool = False) -> Iterator[None]:
    """Connect to `RAY_ADDRESS` (set by `ray job submit` too), else, or where it must be our `own`,
    start a cluster for the length of the block, in which SIGTERM interrupts as Ctrl-C does. Raises
    UsageError where no cluster answers."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    warnings.filterwarnings("ignore", category=RayDeprecationWarning)
    # Advice on how its own operators could be tuned.
    warnings.filterwarnings("ignore", module=r"ray\.data\._internal\.execution")
    address = None if own else named_address()
    before = signal.getsignal(signal.SIGTERM)
    try:
        with _children_deaf_to_sigterm(), _loopback(address is None or _is_on_loopback(address)):
            _connect(address)
            # Ray's native code has taken the signal, to print a trace and end the process at once.
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        _end_at_once()
        _set_up_ray_data()
        with _quiet_native_code():
            yield
    finally:
        ray.shutdown()
        signal.signal(signal.SIGTERM, before)


def _connect(address: str | None) -> None:
    """To the cluster at `address`, or to a new one on this machine. Raises UsageError for the one,
    JobError for the other."""
    kept: dict[str, Any] = {
        "namespace": "fupan",
        "log_to_driver": False,
        "logging_level": logging.ERROR,
    }
    if address is None:
        try:
            with _only_what_works():
                ray.init(
                    address="local",
                    include_dashboard=False,
                    object_store_memory=OBJECT_STORE_BYTES,
                    _node_ip_address=_LOOPBACK,
                    **kept,
                )
        except Exception as error:  # Ray has no class of its own for it
            said = str(error).partition("\n")[0].rstrip(".")
            raise JobError(
                f"Ray did not start on this machine: {said}. It may be too busy, or short of "
                "memory: try again (FUPAN_TRACEBACK=1 shows where it failed)"
            ) from error
        return
    try:
        ray.init(address=address, **kept)
    except (ConnectionError, ValueError) as error:
        raise no_cluster(address, error) from error


@contextmanager
def _only_what_works() -> Iterator[None]:
    """A cluster that is started in the block has no process for a dashboard, none that adds nodes
    and none that shows the logs of others. Ray 2.60 starts all three though it is asked for none of
    them, each a Python that loads Ray, and waits for the first: a fifth of the sample day's run on
    two busy cores."""
    kept = {name: getattr(Node, name) for name in _IDLE_PROCESSES}
    for name in kept:
        setattr(Node, name, lambda self, **_: None)
    try:
        yield
    finally:
        for name, start in kept.items():
            setattr(Node, name, start)


@contextmanager
def _loopback(on: bool) -> Iterator[None]:
    """Where `on`, the processes that are started or connected in the block listen on the loopback
    interface alone. Otherwise Ray 2.60 takes 127.0.0.1 for the machine's address and listens on all
    interfaces, unless this says that the machine belongs to no cluster of several."""
    if not on:
        yield
        return
    name = ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR
    before, given = ray_constants.ENABLE_RAY_CLUSTER, os.environ.get(name)
    ray_constants.ENABLE_RAY_CLUSTER = False
    os.environ[name] = "0"
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before
        os.environ.pop(name)
        if given is not None:
            os.environ[name] = given


def _is_on_loopback(address: str) -> bool:
    """Whether the cluster at `address`, which answers, does so on the loopback interface alone: it
    is one of those that this module starts."""
    host, _, port = address.rpartition(":")
    if host not in _LOCAL_HOSTS:
        return False
    try:
        socket.create_connection(
            (services.get_node_ip_address(), int(port)), ANSWER_SECONDS
        ).close()
    except OSError:
        return True
    return False


@contextmanager
def _children_deaf_to_sigterm() -> Iterator[None]:
    """Processes started in the block inherit a mask without SIGTERM. `timeout` and supervisors send
    it to the whole process group: the command means to end in order, with its cluster alive."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_at_once() -> None:
    """Have `ray.shutdown` kill what it started. It would ask each of its processes with a
    SIGTERM, to which they are deaf here, and wait a second before it kills it. What the raylet has
    started goes with it: its agents would try for a minute to tell the others."""
    node = ray._private.worker._global_node
    if node is None or not node.is_head():
        return
    kill = node.kill_all_processes

    def kill_at_once(**how: Any) -> None:
        (raylet,) = node.all_processes["raylet"]
        with suppress(psutil.NoSuchProcess):
            parent = psutil.Process(raylet.process.pid)
            for process in (parent, *parent.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        kill(**how | {"allow_graceful": False})

    node.kill_all_processes = kill_at_once


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
