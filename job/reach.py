"""Whether every node of the cluster has what the run needs: its folders, and the provider's key.

Invariant: a run whose nodes do not share its folders, or not its key, ends before anything is asked
and paid for; otherwise half of its results would lie on a disk that nobody looks at. The key itself
does not travel: a hash of it does.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from job.boundary import as_job_error
from job.errors import UsageError
from job.run_folder import RunFolder
from job.storage.place import Place
from job.storage.store import store_words
from job.write import write_atomic
from serve.ask.errors import Misconfigured
from serve.ask.settings import Provider, api_key, key_variable

LOOK_SECONDS = 60.0
"""A node that has not answered by then is Ray's to deal with."""
LOOKED_FOR = 20
"""Inputs at most, on each node: those of one run lie together."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What each node must have. `mark`: a file in the folder of the run; `key`: the hash of the
    provider's key, None where none is needed."""

    mark: Place
    inputs: Sequence[Place]
    provider: Provider | None
    key: str | None

    def lacking(self) -> str | None:
        """In words, what this process lacks; None if nothing."""
        try:
            if not self.mark.exists():
                return "does not see --out"
            own = self.mark.parent / f"{self.mark.name}-{secrets.token_hex(4)}"
            write_atomic(own, b"")
            own.unlink()
        except OSError as error:
            return f"cannot write to --out ({store_words(error) or error.strerror or error})"
        for place in self.inputs:
            try:
                if not place.exists():
                    return f"does not see {place}"
            except OSError as error:
                return f"cannot see {place} ({store_words(error) or error.strerror or error})"
        if self.provider is not None and _hash(self.provider) != self.key:
            return f"has another key in {key_variable(self.provider)} than the head, or none"
        return None


def check_reach(folder: RunFolder, inputs: Sequence[Place], provider: Provider | None) -> None:
    """See that each node can write to the folder of this run, finds the `inputs`, and has the key.
    Raises UsageError for the first that does not."""
    nodes = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
    if len(nodes) < 2:
        return
    mark = folder.work / f"seen-{secrets.token_hex(8)}"
    key = _hash(provider) if provider else None
    needs = Needs(mark, inputs[:LOOKED_FOR], provider, key)
    write_atomic(mark, b"")
    try:
        asked = {_look_at(node, needs): address for node, address in nodes.items()}
        answered, _ = ray.wait(list(asked), num_returns=len(asked), timeout=LOOK_SECONDS)
        for answer in answered:
            lacking = _answer(answer)
            if lacking is not None:
                raise UsageError(
                    f"the node {asked[answer]} {lacking}. Inputs and --out ({folder.root}) must be "
                    "on storage that all nodes share, and the key in the environment of each"
                )
    finally:
        mark.unlink()


def _look_at(node: str, needs: Needs) -> ray.ObjectRef:
    here = NodeAffinitySchedulingStrategy(node, soft=False)
    look = ray.remote(Needs.lacking).options(num_cpus=0, max_retries=1, scheduling_strategy=here)
    return look.remote(needs)


def _answer(answer: ray.ObjectRef) -> str | None:
    try:
        lacking: str | None = ray.get(answer)
    except RayTaskError as error:
        return f"cannot run this code ({as_job_error(error)})"
    except RayError:  # The node is gone, or does not work: Ray gives it nothing to do.
        return None
    return lacking


def _hash(provider: Provider) -> str | None:
    try:
        key = api_key(provider)
    except Misconfigured:
        return "none"
    return None if key is None else hashlib.sha256(key.encode()).hexdigest()
