"""Models that are not there, are still loaded, or have other weights than they had."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve.search.errors import NoMeaning
from serve.search.space import PROBE, Space, space_of
from tests.serve.search_world import (
    WordVectors,
    leave_run,
    record,
    search_world,
    vector_of,
)

FIRST = [record("r-1", "the refund is late"), record("r-2", "the parcel is stuck")]


async def test_vectors_of_other_weights_under_the_same_name_are_made_anew(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
    other = WordVectors(weights=7)
    async with search_world(tmp_path, state=tmp_path / ".index", vectors=other) as world:
        await world.server.refresh()
        answer = await world.answer(query="stuck parcel")
        assert (answer["meaning"], answer["hits"][0]["id"]) == ("unavailable", "r-2")
        assert "other weights" in answer["meaning_reason"]
        with pytest.raises(NoMeaning, match="other weights"):
            await world.answer(query="stuck parcel", mode="meaning")
        await world.follow()
        answer = await world.answer(query="stuck parcel", mode="meaning")
        assert (answer["meaning"], answer["meaning_reason"]) == ("used", None)
        assert answer["hits"][0]["id"] == "r-2"
        assert answer["searched"]["embedded"] == 2
        assert set(other.asked) >= {"the refund is late", "the parcel is stuck"}


async def test_weights_that_change_while_all_is_running_are_noticed(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        assert (await world.answer(query="parcel"))["meaning"] == "used"
        world.vectors.weights = 7
        # By a run that comes: none of the vectors that were there is compared with its own.
        leave_run(tmp_path / "2026-03-11", [record("r-3", "another parcel")])
        await world.follow()
        found = await world.hits(query="any parcel", mode="meaning", limit=2)
        assert set(found) == {"r-2", "r-3"}
        assert (await world.answer(query="any parcel"))["searched"]["embedded"] == 3
        # Where nothing comes, by a query.
        world.vectors.weights = 9
        await world.follow()
        assert (await world.answer(query="which parcel"))["meaning"] == "unavailable"
        await world.follow()
        assert (await world.answer(query="which parcel"))["meaning"] == "used"


async def test_while_the_model_is_away_vectors_that_there_are_serve_another_run(
    tmp_path: Path,
) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        await world.hits(query="stuck parcel")
        world.vectors.away = True
        leave_run(tmp_path / "2026-03-11", FIRST)
        world.indexer.look()
        assert await world.indexer.embed(10)
        assert not await world.indexer.embed(10)
        await world.server.refresh()
        assert world.indexer.behind == 0
        answer = await world.answer(query="stuck parcel", mode="meaning", limit=2)
        assert [hit["id"] for hit in answer["hits"]] == ["r-2", "r-2"]


async def test_a_model_is_let_alone_where_nothing_is_to_be_embedded(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
    vectors = WordVectors()
    vectors.away = True  # is an error to whoever asks
    async with search_world(tmp_path, state=tmp_path / ".index", vectors=vectors) as world:
        await world.follow()
        world.clock.now += 24 * 3600
        await world.follow()


async def test_with_the_weights_of_before_nothing_is_embedded_again(tmp_path: Path) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    for weights, asked in ((0, 2), (7, 2), (0, 0)):
        vectors = WordVectors(weights)
        async with search_world(tmp_path, state=tmp_path / ".index", vectors=vectors) as world:
            await world.follow()
            await world.hits(query="which weights")
            await world.follow()
            assert len(vectors.asked) == asked + 1
            found = await world.hits(query="stuck parcel", mode="meaning", limit=1)
            assert found == ["r-2"]


async def test_what_whose_vectors_there_are_is_found_again_without_the_catalog(
    tmp_path: Path,
) -> None:
    leave_run(tmp_path / "2026-03-10", FIRST)
    async with search_world(tmp_path, state=tmp_path / ".index") as world:
        await world.follow()
        (world.state / "index.json").unlink()
    again = WordVectors()
    async with search_world(tmp_path, state=tmp_path / ".index", vectors=again) as world:
        await world.follow()
        assert again.asked == []
        assert await world.hits(query="stuck parcel", mode="meaning", limit=1) == ["r-2"]


@given(st.integers(0, 1000), st.floats(0, 0.004))
def test_rounding_is_no_other_model_and_other_weights_are(seed: int, noise: float) -> None:
    probe = vector_of(PROBE)
    space = Space("m", tuple(probe.astype(float).tolist()))
    rng = np.random.default_rng(seed)
    rounded = probe.astype(np.float64) + noise * rng.standard_normal(len(probe))
    assert space.has((rounded / np.linalg.norm(rounded)).astype(np.float16))
    assert not space.has(vector_of(PROBE, weights=1 + seed))
    assert not space.has(probe[:32])


def test_a_damaged_note_of_a_model_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    made = space_of(tmp_path, "m", vector_of(PROBE))
    assert space_of(tmp_path, "m", vector_of(PROBE)) == made
    assert space_of(tmp_path, "another", vector_of(PROBE)).id != made.id
    for file in (tmp_path / "models").iterdir():
        file.write_text("{")
    assert space_of(tmp_path, "m", vector_of(PROBE)) == made
