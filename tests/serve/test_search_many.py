"""Many runs: what each of them costs does not grow with how many there are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve.search import holders, missing
from serve.search.catalog import TELL_SECONDS, Catalog
from serve.search.holders import Holders
from serve.search.segment import digests_in
from serve.search.vectors import DIGEST_BYTES, Digests, Kind
from tests.serve.search_world import leave_run, record, search_world


@given(st.lists(st.lists(st.integers(1, 9), max_size=6), max_size=6), st.data())
def test_each_segment_that_has_a_text_is_found_by_it(
    texts: list[list[int]], data: st.DataObject
) -> None:
    def digests(numbers: list[int]) -> Digests:
        each = [bytes([number]) * DIGEST_BYTES for number in numbers]
        return np.array(each, dtype=Kind)

    wanted = data.draw(st.lists(st.integers(1, 9), max_size=3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holders, "digests_in", lambda segment: digests(texts[int(segment.name)]))
        first = data.draw(st.integers(0, len(texts)))
        there = Holders(Path(str(number)) for number in range(first))
        for number in range(len(texts)):
            there.add(Path(str(number)))
    found: set[int] = set()
    number = 0
    while segments := there.nth(digests(wanted), number):
        found |= {int(segment.name) for segment in segments}
        number += 1
    assert found == {n for n, each in enumerate(texts) if set(each) & set(wanted)}


async def test_of_each_run_texts_are_read_a_few_times_however_many_runs_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: Counter[str] = Counter()

    def counted(segment: Path) -> Digests:
        read[segment.name] += 1
        return digests_in(segment)

    for number in range(12):
        leave_run(tmp_path / f"{number}", [record("r-1", f"the refund {number}")])
    monkeypatch.setattr(holders, "digests_in", counted)
    monkeypatch.setattr(missing, "digests_in", counted)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        assert len(read) == 12
        assert max(read.values()) <= 3
        assert len(await world.hits(query="refund", mode="meaning", limit=20)) == 12


async def test_the_index_is_published_once_a_second_while_texts_are_embedded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    write = Catalog.write

    def counted(self: Catalog, state: Path) -> None:
        written.append(sum(run.embedded for run in self.runs))
        write(self, state)

    monkeypatch.setattr(Catalog, "write", counted)
    for number in range(12):
        leave_run(tmp_path / f"{number}", [record("r-1", f"the refund {number}")])
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        world.indexer.look()
        for _ in range(6):
            await world.indexer.embed(10)
        assert written == [0, 0]
        world.clock.now += TELL_SECONDS
        for _ in range(3):
            await world.indexer.embed(10)
        assert written == [0, 0, 7]
        await world.follow()
        assert written == [0, 0, 7, 9, 12]
        assert (await world.answer(query="refund"))["searched"]["embedded"] == 12


async def test_a_vector_that_one_run_has_lost_is_taken_from_another(tmp_path: Path) -> None:
    for name in "ab":
        leave_run(tmp_path / name, [record("r-1", "the refund is late")])
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        for file in world.state.glob("vectors/a-*/*/*.parquet"):
            file.unlink()
        leave_run(tmp_path / "c", [record("r-1", "the refund is late")])
        await world.follow()
        assert len(world.vectors.asked) == 1
        assert (await world.answer(query="late"))["searched"]["embedded"] == 3
