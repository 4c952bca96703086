"""Whether every node of the cluster sees what the run reads and where it writes.

Invariant: a run whose nodes do not share its folders ends before anything is asked and paid for;
otherwise half of its results would lie on a disk that nobody looks at.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from itertools import islice

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from job.errors import UsageError
from job.place import Place
from job.run_folder import RunFolder
from job.store import store_words
from job.write import write_atomic

LOOK_SECONDS = 60.0
"""A node that has not answered by then is Ray's to deal with."""
LOOKED_FOR = 100
"""Inputs at most, on each node: those of one run lie together."""


def check_reach(folder: RunFolder, inputs: Iterable[Place]) -> None:
    """See that each node can write to the folder of this run and finds the `inputs`. Raises
    UsageError for the first that cannot, by its address."""
    nodes = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
    if len(nodes) < 2:
        return
    some = list(islice(inputs, LOOKED_FOR))
    mark = folder.work / f"seen-{secrets.token_hex(8)}"
    write_atomic(mark, b"")
    look = ray.remote(_missing).options(num_cpus=0, max_retries=1)
    try:
        asked = {
            look.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)
            ).remote(mark, some): address
            for node, address in nodes.items()
        }
        answered, _ = ray.wait(list(asked), num_returns=len(asked), timeout=LOOK_SECONDS)
        for answer in answered:
            _judge(answer, asked[answer], folder.root)
    finally:
        mark.unlink()


def _judge(answer: ray.ObjectRef, address: str, root: Place) -> None:
    try:
        missing: tuple[Place | None, str] | None = ray.get(answer)
    except RayError:
        return
    if missing is None:
        return
    place, why = missing
    what = f"--out {root}" if place is None else str(place)
    if why:
        raise UsageError(f"the node {address} cannot use {what}: {why}")
    raise UsageError(
        f"the node {address} does not see {what}: inputs and --out must be on storage that all "
        "nodes of the cluster share"
    )


def _missing(mark: Place, inputs: Sequence[Place]) -> tuple[Place | None, str] | None:
    """On a node: what is not there (None: the folder of the run), and what a store said to it; None
    if all is."""
    own = mark.parent / f"{mark.name}-{secrets.token_hex(4)}"
    looked_at: Place | None = None
    try:
        if not mark.exists():
            return None, ""
        write_atomic(own, b"")
        own.unlink()
        for looked_at in inputs:
            if not looked_at.exists():
                return looked_at, ""
    except OSError as error:
        return looked_at, store_words(error) or ""
    return None
