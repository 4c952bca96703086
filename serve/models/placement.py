"""Where the replicas of a model, or a pool, run: settings and what the cluster has -> what Ray is
asked for. Pure.

Invariant: a model goes to the CPU only where nothing was said of the kind of GPU that it wants, and
what was decided is said in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from serve.models.settings import BUNDLED, Entry


@dataclass(frozen=True, slots=True)
class Placement:
    """`actor_options`: what each replica reserves, as Ray takes it; `said`: where it runs."""

    actor_options: dict[str, Any]
    said: str


def place(entry: Entry, gpus: float) -> Placement:
    """Where `entry` runs in a cluster that has so many `gpus`.

    With `accelerator_type` it waits for such a GPU, where the cluster has none too: a cluster may
    add nodes when they are asked for.
    """
    share, why = _share(entry, gpus)
    options: dict[str, Any] = {"num_cpus": entry.cpus or 0, "num_gpus": share}
    if entry.memory is not None:
        options["memory"] = entry.memory
    if not share:
        return Placement(options, f"CPU ({why})")
    kind = ""
    if entry.accelerator_type is not None:
        options["accelerator_type"] = entry.accelerator_type
        kind = f" ({entry.accelerator_type})"
    waits = "" if gpus else ", which the cluster has to add: it has none"
    said = "a GPU" if share == 1 else f"{share:g} of a GPU"
    return Placement(options, f"{said}{kind}{waits}")


def _share(entry: Entry, gpus: float) -> tuple[float, str]:
    """The share of a GPU that each replica takes, and why it takes none."""
    if entry.gpus == 0:
        return 0.0, "gpus: 0"
    if not entry.can_use_gpu():
        return 0.0, f"`{BUNDLED}` computes on the CPU alone"
    if not gpus and entry.accelerator_type is None:
        return 0.0, "no GPU in this cluster"
    return 1.0 if entry.gpus is None else entry.gpus, ""
