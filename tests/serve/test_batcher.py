"""Batches in simulated time: the device takes a second a batch unless a test says otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from serve.batch_controller import BatchController, Bounds
from serve.batcher import TRUSTED_SECONDS, Batcher, Closed, Computed, TooLate, Work
from tests.serve.virtual_loop import run_virtually

TextWork = Work[str, str]


class Device:
    """Remembers each batch, and how many it computed at once."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.at_once = self.most_at_once = 0

    async def compute(self, values: Sequence[str]) -> Computed[str]:
        self.batches.append(list(values))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(1.0)
        self.at_once -= 1
        if "broken" in values:
            raise RuntimeError("broken")
        return Computed([value.upper() for value in values])

    def batcher(self, limit: int = 8, slots: int = 1, enough: int = 8) -> Batcher[str, str]:
        bounds = Bounds(least=limit, most=limit, target=9.0, longest=9.0)
        return Batcher(self.compute, BatchController(bounds, limit), slots, enough)


def works(texts: str, seconds: float = 60.0) -> list[TextWork]:
    """One a word, of one token each."""
    until = asyncio.get_running_loop().time() + seconds
    return [Work(text, 1, until) for text in texts.split()]


async def results(some: Sequence[TextWork]) -> list[str | BaseException]:
    return await asyncio.gather(*(work.done for work in some), return_exceptions=True)


def run(main: Coroutine[Any, Any, None]) -> None:
    run_virtually(main)


def test_whoever_comes_in_one_turn_of_the_loop_is_in_one_batch() -> None:
    async def main() -> None:
        device = Device()
        batcher = device.batcher()
        first, second = works("a b"), works("c")
        batcher.add(first)
        batcher.add(second)
        assert await results([*first, *second]) == ["A", "B", "C"]
        assert device.batches == [["a", "b", "c"]]

    run(main())


def test_while_the_slot_is_taken_the_next_batch_fills() -> None:
    async def main() -> None:
        device = Device()
        batcher = device.batcher()
        all_works = works("a b c d")
        for work in all_works:
            batcher.add([work])
            await asyncio.sleep(0.1)
        await results(all_works)
        assert device.batches == [["a"], ["b", "c", "d"]]
        assert device.most_at_once == 1

    run(main())


def test_a_batch_keeps_to_the_limit_and_the_slots() -> None:
    async def main() -> None:
        device = Device()
        batcher = device.batcher(limit=2, slots=2)
        some = works("a b c d e")
        batcher.add(some)
        await results(some)
        assert sorted(map(len, device.batches)) == [1, 2, 2]
        assert device.most_at_once == 2

    run(main())


def test_a_short_queue_is_shared_among_the_slots() -> None:
    async def main() -> None:
        device = Device()
        batcher = device.batcher(limit=100, slots=2, enough=1)
        some = works("a b c d e f g h")
        batcher.add(some)
        await results(some)
        assert device.batches == [list("abcd"), list("efgh")]

    run(main())


def test_a_long_queue_is_shared_in_halves_that_are_efficient() -> None:
    async def main() -> None:
        device = Device()
        batcher = device.batcher(limit=100, slots=2, enough=2)
        some = works("a " * 2 * 24)
        batcher.add(some)
        await results(some)
        assert [len(batch) for batch in device.batches] == [12, 12, 8, 8, 4, 2, 2]

    run(main())


def test_what_is_withdrawn_is_not_computed_and_makes_room() -> None:
    async def main() -> None:
        device = Device()
        batcher = device.batcher(limit=1)
        running, gone, stays = works("running gone stays")
        batcher.add([running, gone, stays])
        await asyncio.sleep(0.5)
        batcher.withdraw(gone)
        assert batcher.waiting_tokens == 1
        await results([running, gone, stays])
        assert device.batches == [["running"], ["stays"]]
        assert gone.done.cancelled()

    run(main())


def test_what_has_begun_has_its_result_though_it_is_withdrawn() -> None:
    async def main() -> None:
        device = Device()
        batcher = device.batcher()
        (begun,) = works("begun")
        batcher.add([begun])
        await asyncio.sleep(0.5)
        batcher.withdraw(begun)
        assert await begun.done == "BEGUN"

    run(main())


def test_what_can_no_longer_be_ready_in_time_is_not_computed() -> None:
    async def main() -> None:
        device = Device()
        batcher = device.batcher(limit=1, enough=1)
        first, over = works("first")[0], works("over", seconds=0.9)[0]
        late, patient = works("late", seconds=1.5)[0], works("patient")[0]
        batcher.add([first, over, late, patient])
        # One takes a second: the second's time is over by then, the third's will be.
        _, second, third, fourth = await results([first, over, late, patient])
        assert isinstance(second, TooLate)
        assert isinstance(third, TooLate)
        assert fourth == "PATIENT"
        assert device.batches == [["first"], ["patient"]]

    run(main())


def test_a_device_that_was_slow_is_tried_again() -> None:
    async def main() -> None:
        device = Device()
        batcher = device.batcher(limit=1, enough=1)
        batcher.add(works("slow"))
        await asyncio.sleep(1.5)
        hasty = works("hasty", seconds=0.9)
        batcher.add(hasty)
        assert isinstance((await results(hasty))[0], TooLate)
        await asyncio.sleep(TRUSTED_SECONDS)
        again = works("again", seconds=0.9)
        batcher.add(again)
        assert await results(again) == ["AGAIN"]

    run(main())


def test_a_queue_full_of_the_late_is_passed_over() -> None:
    async def main() -> None:
        device = Device()
        batcher = device.batcher(limit=1)
        late = works("x " * 1200, seconds=0.5)
        good = works("good")
        batcher.add(works("first"))
        await asyncio.sleep(0)
        batcher.add([*late, *good])
        assert await results(good) == ["GOOD"]
        assert all(isinstance(each, TooLate) for each in await results(late))

    run(main())


def test_a_batch_that_fails_fails_alone() -> None:
    async def main() -> None:
        device = Device()
        batcher = device.batcher(limit=1)
        broken, good = works("broken good")
        batcher.add([broken, good])
        first, second = await results([broken, good])
        assert isinstance(first, RuntimeError)
        assert second == "GOOD"

    run(main())


def test_seconds_are_known_after_the_first_batch() -> None:
    async def main() -> None:
        device = Device()
        batcher = device.batcher(limit=2, enough=2)
        assert batcher.seconds(100) == 0.0
        some = works("a b")
        batcher.add(some)
        await results(some)
        assert batcher.seconds(10) == pytest.approx(5.0)
        batcher.add(works("c d e f"))
        await asyncio.sleep(0)
        assert batcher.seconds(0) == pytest.approx(2.0)
        assert batcher.longest() == 0.0
        await asyncio.sleep(0.5)
        assert batcher.longest() == pytest.approx(0.5)

    run(main())


def test_at_the_end_the_running_are_waited_for_and_the_waiting_are_told() -> None:
    async def main() -> None:
        device = Device()
        batcher = device.batcher(limit=1)
        running, waiting = works("running waiting")
        batcher.add([running, waiting])
        await asyncio.sleep(0.5)
        await batcher.aclose()
        first, second = await results([running, waiting])
        assert first == "RUNNING"
        assert isinstance(second, Closed)
        with pytest.raises(Closed):
            batcher.add(works("more"))

    run(main())
