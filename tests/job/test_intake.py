"""A slice is read, cleaned and folded without losing a record, however long its texts are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from job.clean.cleaner import CleanSettings
from job.fold.folding import Claims, came_first, claimed
from job.intake import BLOCK_RECORDS, MEMBER_ROWS, Intake
from job.ledger import read_manifests
from job.mask.masking import Masker
from job.read import plan_inputs
from job.records import Record
from job.run_folder import RunFolder
from job.storage.place import Place

_DAY = date(2026, 3, 14)


@dataclass
class Shards:
    """Claims of this process; `blocks`: records in each; `events`: a claim that began (+) and one
    that was waited for (-)."""

    claims: Claims = field(default_factory=lambda: Claims(1000))
    blocks: list[int] = field(default_factory=list)
    events: str = ""

    def claim(self, records: Sequence[Record]) -> Callable[[], list[str | None]]:
        first = came_first(*self.claims.claim(*claimed(records)))
        self.blocks.append(len(records))
        self.events += "+"

        def held() -> list[str | None]:
            self.events += "-"
            return first

        return held


class Board:
    class slice_read:
        @staticmethod
        def remote(counts: Any) -> None:
            pass


def read(tmp_path: Path, lines: list[str]) -> tuple[list[str], list[str], Shards]:
    """Ids of the records to ask and of the folded ones."""
    source = tmp_path / "app.log"
    source.write_text("".join(f"2026-03-14 10:00:00 ERROR {line}\n" for line in lines))
    plan = plan_inputs([str(source)], reference=_DAY, zone=UTC)
    folder = RunFolder(Place.of(tmp_path / "out"))
    (tmp_path / "out").mkdir()
    folder.begin({}, overwrite=False)
    shards = Shards()
    cleaning = {plan.files[0].source: CleanSettings(_DAY, UTC, Masker(b"k" * 32))}
    intake = Intake(plan.slices, cleaning, folder, shards, Board)
    asked = [
        record_id
        for number in range(len(plan.slices))
        for block in intake({"id": np.array([number])})
        for record_id in block["id"].to_pylist()
    ]
    members = [
        record_id
        for path in sorted((tmp_path / "out").rglob("members/*/*.parquet"))
        for record_id in pq.read_table(path)["id"].to_pylist()
    ]
    (counts,) = read_manifests(folder.manifests).values()
    assert sum(one.records for one in counts) == len(lines)
    assert sum(one.folded for one in counts) == len(members)
    return asked, members, shards


@pytest.mark.parametrize("count", [1, MEMBER_ROWS, 3 * BLOCK_RECORDS + 1, 5 * BLOCK_RECORDS])
def test_every_record_is_asked_or_folded_once(tmp_path: Path, count: int) -> None:
    asked, members, _ = read(tmp_path, [f"lease lost after {n} s" for n in range(count)])
    assert (len(asked), len(members)) == (1, count - 1)
    assert len({*asked, *members}) == count


def test_blocks_are_read_on_while_their_claims_are_under_way(tmp_path: Path) -> None:
    _, _, shards = read(tmp_path, [f"lease lost after {n} s" for n in range(4 * BLOCK_RECORDS)])
    assert (shards.blocks, shards.events) == ([BLOCK_RECORDS] * 4, "+++-+---")


@pytest.mark.slow
def test_long_texts_make_small_blocks(tmp_path: Path) -> None:
    asked, members, shards = read(tmp_path, [f"{'wide ' * 100_000} {n}" for n in range(12)])
    assert (len(asked), len(members)) == (1, 11)
    assert max(shards.blocks) <= 9
