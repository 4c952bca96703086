"""What the batcher tells its controller of a batch, and what padding means for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from serve.batch_controller import Batch, BatchController, Bounds
from serve.batcher import Batcher, Computed, Work
from tests.serve.virtual_loop import run_virtually as run


class Told(BatchController):
    """Remembers what it is told."""

    def __init__(self) -> None:
        super().__init__(Bounds(least=1, most=64, target=9.0, longest=9.0), 64)
        self.batches: list[Batch] = []
        self.did_not: list[int] = []

    def done(self, batch: Batch, now: float) -> None:
        self.batches.append(batch)
        super().done(batch, now)

    def did_not_fit(self, tokens: int, now: float) -> None:
        self.did_not.append(tokens)
        super().did_not_fit(tokens, now)


@pytest.mark.parametrize(("padded", "cost"), [(True, 30), (False, 27)])
def test_what_a_batch_cost_is_told_with_its_memory_and_what_waits(padded: bool, cost: int) -> None:
    async def compute(values: Sequence[int]) -> Computed[int]:
        await asyncio.sleep(2.0)
        return Computed(values, memory=0.3, cache=0.4)

    async def main() -> None:
        told = Told()
        batcher = Batcher(compute, told, slots=1, enough=30, padded=padded)
        first = [Work[int, int](tokens, tokens, 60.0) for tokens in (10, 8, 9)]
        later = Work[int, int](60, 60, 60.0)
        batcher.add(first)
        await asyncio.sleep(1.0)
        batcher.add([later])
        await asyncio.gather(*(work.done for work in [*first, later]))
        # 30 tokens (`enough`) in 2 seconds: 60 take 4.
        assert told.batches[0] == Batch(cost, 2.0, 60, 4.0, memory=0.3, cache=0.4)
        assert not told.did_not

    run(main())


def test_short_texts_are_not_padded_to_a_long_one() -> None:
    async def main() -> None:
        seen: list[list[int]] = []

        async def compute(values: Sequence[int]) -> Computed[int]:
            seen.append(list(values))
            return Computed(values)

        for padded in (True, False):
            batcher = Batcher(compute, Told(), slots=1, enough=60, padded=padded)
            some = [Work[int, int](tokens, tokens, 60.0) for tokens in (4, 50, 5)]
            batcher.add(some)
            await asyncio.gather(*(work.done for work in some))
        assert seen == [[4, 5], [50], [4, 5, 50]]

    run(main())


def test_the_next_batches_are_smaller_where_one_did_not_fit() -> None:
    async def main() -> None:
        told, seen = Told(), list[int]()

        async def compute(values: Sequence[str]) -> Computed[str]:
            seen.append(len(values))
            return Computed(values, fitted=len(values) <= 16)

        batcher = Batcher(compute, told, slots=1, enough=32)
        some = [Work[str, str]("a", 1, 60.0) for _ in range(128)]
        batcher.add(some)
        assert await asyncio.gather(*(work.done for work in some)) == ["a"] * 128
        assert told.did_not == [64, 32]
        assert seen == [64, 32, 16, 16]

    run(main())
