"""Whose vectors are kept: a model's, by its name and by the vector that it gave a fixed text.

A model whose weights change keeps its name, and gives vectors that belong to no others. So a vector
is kept, and compared, under the name and the vector of PROBE that came with it. Two that are nearly
the same are one: processors differ by rounding.

Invariant: a space that was once written down stays, and is found again by the model that it is of,
also where its weights had been others meanwhile.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from serve.search.vectors import Half

PROBE = "The refund is three weeks late 退款三周还没有到账: order-db-pool timed out"
"""What every model is asked for beside what it is asked for."""
ALIKE = 0.99
"""The cosine of two vectors of PROBE from which on they are one model's. Rounding to 1e-2 a number,
the most that 16-bit floats of a GPU in other company are held to, leaves 0.998 of 384 numbers if it
is as usual, a third of that; weights that move this text less than 0.99 move others about as
little, and their vectors compare."""
FOLDER = "models"


@dataclass(frozen=True, slots=True)
class Space:
    """`model`: its name; `probe`: its vector of PROBE, empty where it has not given one yet."""

    model: str
    probe: tuple[float, ...] = ()

    @property
    def id(self) -> str:
        """By which folders of vectors are named."""
        state = blake2b(self.model.encode(), digest_size=6)
        state.update(np.array(self.probe, dtype=np.float16).tobytes())
        return state.hexdigest()

    def has(self, probe: Half) -> bool:
        """Whether the model gave this vector of PROBE."""
        return len(self.probe) == len(probe) > 0 and alike(np.array(self.probe), probe)


def alike(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two vectors of PROBE are of one model."""
    if one.shape != other.shape:
        return False
    return float(one.astype(np.float64) @ other.astype(np.float64)) >= ALIKE


def space_of(state: Path, model: str, probe: Half) -> Space:
    """The space of the model of this name that gave `probe`; a new one is written down below
    `state`. Raises OSError, also where one that is there cannot be read now: it may be the one."""
    folder = state / FOLDER
    for file in sorted(folder.glob("*.json")):
        content = file.read_bytes()
        with suppress(ValueError, TypeError, LookupError):  # a damaged one
            told = orjson.loads(content)
            known = Space(str(told["model"]), tuple(map(float, told["probe"])))
            if known.model == model and known.has(probe):
                return known
    new = Space(model, tuple(probe.astype(float).tolist()))
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{uuid.uuid4().hex[:8]}.part"
    hidden.write_bytes(orjson.dumps(asdict(new)))
    os.replace(hidden, folder / f"{new.id}.json")
    return new
