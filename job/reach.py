"""Whether every node of the cluster sees what the run reads and where it writes.

Invariant: a run whose nodes do not share its folders ends before anything is asked and paid for;
otherwise half of its results would lie on a disk that nobody looks at.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from job.errors import UsageError
from job.read.streams import Location
from job.run_folder import RunFolder

LOOK_SECONDS = 60.0
"""A node that has not answered by then is Ray's to deal with."""
LOOKED_FOR = 100
"""Inputs at most, on each node: those of one run lie together."""


def check_reach(folder: RunFolder, inputs: Iterable[Location]) -> None:
    """See that each node can write to the folder of this run and finds the `inputs` that are on a
    file system of the machine. Raises UsageError for the first that cannot, by its address."""
    nodes = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
    if len(nodes) < 2:
        return
    local = [each.path for each in inputs if not each.filesystem]
    mark = folder.work / f"seen-{secrets.token_hex(8)}"
    mark.touch()
    look = ray.remote(_missing).options(num_cpus=0, max_retries=1)
    try:
        asked = {
            look.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)
            ).remote(str(mark), local[:LOOKED_FOR]): address
            for node, address in nodes.items()
        }
        answered, _ = ray.wait(list(asked), num_returns=len(asked), timeout=LOOK_SECONDS)
        for answer in answered:
            _judge(answer, asked[answer], folder.root)
    finally:
        mark.unlink(missing_ok=True)


def _judge(answer: ray.ObjectRef, address: str, root: Path) -> None:
    try:
        missing: str | None = ray.get(answer)
    except RayError:
        return
    if missing is None:
        return
    what = f"--out {root}" if missing == "" else missing
    raise UsageError(
        f"the node {address} does not see {what}: inputs and --out must be on storage that all "
        "nodes of the cluster share"
    )


def _missing(mark: str, inputs: Sequence[str]) -> str | None:
    """On a node: what is not there, "" for the folder of the run; None if all is."""
    seen = Path(mark)
    if not seen.exists():
        return ""
    own = seen.with_name(f"{seen.name}-{secrets.token_hex(4)}")
    try:
        own.touch()
        own.unlink()
    except OSError:
        return ""
    return next((path for path in inputs if not Path(path).exists()), None)
