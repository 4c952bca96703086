"""The near cache: what it finds, holds and lets go."""

from __future__ import annotations

import time

import pytest

from serve.cache.agree import LONGEST
from serve.cache.near import ENTRY_BYTES, SAME, NearIndex
from tests.serve.cache_calls import Clock

HERE, THERE = b"partition", b"another"


def index(max_bytes: int = 10**6, clock: Clock | None = None) -> NearIndex:
    return NearIndex(max_bytes, clock or Clock())


async def finds(kept: str, asked: str) -> bool:
    ours = index()
    await ours.add(HERE, kept, b"key", 60)
    return await ours.find(HERE, asked) == b"key"


@pytest.mark.parametrize(
    ("kept", "asked"),
    [
        ("How do I rename a file in Linux?", "how do i rename a file in Linux"),
        ("How do I rename a file in Linux?", "Please, how do I rename a file in Linux ?"),
        ("What's the capital of Kenya?", "Could you tell me what is the capital of Kenya?"),
        ("Linux 怎么重命名文件？", "请问Linux怎么重命名文件"),
        ("Ｌｉｎｕｘ怎么重命名文件?", "Linux 怎么重命名文件？"),
    ],
)
async def test_the_same_words_in_another_form_are_near(kept: str, asked: str) -> None:
    assert await finds(kept, asked)
    assert await finds(asked, kept)


@pytest.mark.parametrize(
    ("kept", "asked"),
    [
        ("How do I rename a file?", "How can I rename a file?"),
        ("Who is the CEO of Apple?", "Who was the CEO of Apple?"),
        ("Is polish hard to learn?", "Is Polish hard to learn?"),
        ("Calculate 8-3", "Calculate 8/3"),
        ("What is 1,5?", "What is 15?"),
        ("How do I sort a list in C?", "How do I sort a list in C++?"),
        ("先加盐还是先加糖", "先加糖还是先加盐"),
        ("Classify: Great phone", "Classify: great phone"),
    ],
)
async def test_what_asks_for_something_else_is_not(kept: str, asked: str) -> None:
    assert not await finds(kept, asked)


async def test_partitions_are_apart() -> None:
    ours = index()
    await ours.add(HERE, "How do I rename a file?", b"key", 60)
    assert await ours.find(THERE, "How do I rename a file?") is None


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_an_equal_question_is_preferred(order: tuple[int, int]) -> None:
    texts = ("How do I rename a file?", "how do I rename a file")
    ours = index()
    for number in order:
        await ours.add(HERE, texts[number], bytes([number]), 60)
    assert [await ours.find(HERE, text) for text in texts] == [b"\0", b"\1"]


async def test_a_question_leaves_after_its_time() -> None:
    clock = Clock()
    ours = index(clock=clock)
    await ours.add(HERE, "How do I rename a file?", b"key", 60)
    await ours.add(HERE, "how do I rename a file?", b"later", 90)
    clock.now += 60
    assert await ours.find(HERE, "How do I rename a file?") == b"later"
    assert (len(ours), ours.held) == (1, ENTRY_BYTES)


async def test_a_forgotten_question_is_not_found() -> None:
    ours = index()
    await ours.add(HERE, "How do I rename a file?", b"key", 60)
    ours.forget(HERE, b"key")
    ours.forget(HERE, b"key")
    assert await ours.find(HERE, "How do I rename a file?") is None
    assert ours.held == 0


async def test_it_is_bounded_and_keeps_what_is_found() -> None:
    ours = index(max_bytes=10 * ENTRY_BYTES)
    await ours.add(HERE, "How do I rename a file?", b"first", 60)
    for number in range(50):
        await ours.add(HERE, f"How do I rename {number} files?", bytes([number]), 60)
        assert await ours.find(HERE, "how do i rename a file") == b"first"
    assert len(ours) == 10


async def test_of_one_form_only_a_few_are_held() -> None:
    ours = index()
    for number in range(SAME + 2):
        await ours.add(HERE, "How do I rename a file?" + " " * number, bytes([number]), 60)
    assert len(ours) == SAME


async def test_many_questions_that_are_alike_make_it_no_slower() -> None:
    text = "Classify the sentiment of this review: order {} arrived late"

    async def seconds(questions: int) -> float:
        ours = index(max_bytes=20_000 * ENTRY_BYTES)
        for number in range(questions):
            await ours.add(HERE, text.format(number), number.to_bytes(4, "big"), 60)
        start = time.thread_time()
        for number in range(100):
            assert await ours.find(HERE, text.format(number).replace("Classify", "classify"))
        return time.thread_time() - start

    # Where all were compared it would be a hundred times as long.
    assert await seconds(20_000) < 20 * await seconds(200)


@pytest.mark.parametrize("text", ["", "？！", "rename " * (LONGEST // 7 + 1)])
async def test_no_words_and_too_many_are_left_to_the_exact_cache(text: str) -> None:
    assert not await finds(text, text)
