"""themes.parquet: the themes of a run, and what a later run needs to continue them.

Invariant: what is read back are the themes that were written; vectors are only compared where
`space` is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from job.naming.code_names import ThemeName
from job.storage.place import Place
from job.themes.groups import ThemeGroup
from job.themes.space import Vectors
from job.write import write_table

THEMES_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("title", pa.string(), nullable=False),
        pa.field("summary", pa.string(), nullable=False),
        pa.field("cause", pa.string()),
        pa.field("basis", pa.string(), nullable=False),
        pa.field("action", pa.string()),
        pa.field("severity", pa.string(), nullable=False),
        pa.field("severity_reason", pa.string(), nullable=False),
        pa.field("named_by", pa.string(), nullable=False),
        pa.field("positive", pa.bool_(), nullable=False),
        pa.field("issues", pa.int64(), nullable=False),
        pa.field("centroid", pa.list_(pa.float32()), nullable=False),
        pa.field("cohesion", pa.float32(), nullable=False),
        pa.field("space", pa.string(), nullable=False),
    ]
)
"""themes.parquet. `centroid` and `cohesion` let a later run continue the theme; `space` names the
model they belong to."""


@dataclass(frozen=True, slots=True)
class EarlierTheme:
    """A theme of an earlier run: what `ids.continue_ids` compares."""

    id: str
    positive: bool
    centroid: Vectors
    cohesion: float
    space: str


def write_themes(
    place: Place, groups: Sequence[ThemeGroup], names: Mapping[str, ThemeName], space: str
) -> None:
    """Write the themes of a run."""
    rows = [
        asdict(names[group.id])
        | {
            "id": group.id,
            "positive": group.positive,
            "issues": group.count,
            "centroid": group.centroid,
            "cohesion": group.cohesion,
            "space": space,
        }
        for group in groups
    ]
    write_table(place, [pa.Table.from_pylist(rows, THEMES_SCHEMA)], THEMES_SCHEMA)


def read_themes(place: Place) -> list[EarlierTheme]:
    """The themes an earlier run left at `place`; none if it left none, or not in this form."""
    columns = ["id", "positive", "centroid", "cohesion", "space"]
    try:
        with place.open() as file:
            rows = pq.read_table(file, columns=columns).to_pylist()
    except (FileNotFoundError, pa.ArrowInvalid):
        return []
    return [
        EarlierTheme(**{**row, "centroid": np.array(row["centroid"], dtype=np.float32)})
        for row in rows
    ]
