"""The semantic cache with a small stand-in for the model: what it finds, holds and lets go."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import numpy as np
import pytest

from serve.cache.nearest import FEW, Nearest
from serve.cache.semantic import LONGEST, SemanticIndex
from serve.cache.thresholds import Language, NotCalibrated, language_of, thresholds_of
from serve.cache.vectors import BATCH, WAITING, QuestionVectors
from serve.embedder import Vectors
from tests.serve.cache_calls import Clock

HERE, THERE = b"partition", b"another"
LEAST: dict[Language, float] = {"en": 0.6, "zh": 0.6}


def letters(texts: Sequence[str]) -> Vectors:
    """Texts of the same letters are alike."""
    rows = np.zeros((len(texts), 64), dtype=np.float32)
    for row, text in enumerate(texts):
        for letter in text.lower():
            rows[row, ord(letter) % 64] += 1
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return rows


def index(most: int = 100, clock: Clock | None = None) -> SemanticIndex:
    return SemanticIndex(letters, LEAST, most, clock or Clock())


async def kept(index: SemanticIndex, text: str, key: bytes, partition: bytes = HERE) -> None:
    await index.add(partition, text, key, 60)
    await index.settled()


async def test_a_rewording_is_found_in_its_partition_only() -> None:
    ours = index()
    await kept(ours, "How do I rename a file in Linux?", b"key")
    assert await ours.find(HERE, "In Linux, how can I rename a file?") == b"key"
    assert await ours.find(THERE, "How do I rename a file in Linux?") is None
    await kept(ours, "How do I rename a folder in Linux?", b"other", THERE)
    assert await ours.find(THERE, "How can I rename a folder in Linux?") == b"other"
    assert await ours.find(HERE, "How can I rename a folder in Linux?") is None
    await ours.aclose()


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        ("How do I rename 3 files in Linux?", "How do I rename 4 files in Linux?"),
        ("How do I get from Paris to Lyon?", "How do I get from Lyon to Paris?"),
        ("哪些股票分红？", "哪些股票不分红？"),
    ],
)
async def test_what_does_not_agree_is_not_found_however_alike(known: str, asked: str) -> None:
    ours = index()
    await kept(ours, known, b"key")
    assert await ours.find(HERE, asked) is None
    await ours.aclose()


async def test_what_agrees_is_not_found_if_it_is_not_alike() -> None:
    ours = SemanticIndex(letters, {"en": 1.1}, 10)
    await kept(ours, "How do I rename a file?", b"key")
    assert await ours.find(HERE, "How can I rename a file?") is None
    await ours.aclose()


async def test_a_nearer_question_that_does_not_agree_hides_none_that_does() -> None:
    ours = index()
    for number in range(5):
        await kept(ours, f"How do I rename {number} files?", bytes([number]))
    assert await ours.find(HERE, "How can I rename 3 files?") == b"\3"
    await ours.aclose()


async def test_an_equal_question_is_preferred() -> None:
    texts = ("How do I rename a file?", "How can I rename a file?")
    for order in ((0, 1), (1, 0)):
        ours = index()
        for number in order:
            await kept(ours, texts[number], bytes([number]))
        assert [await ours.find(HERE, text) for text in texts] == [b"\0", b"\1"]
        await ours.aclose()


async def test_a_language_without_a_threshold_is_left_alone() -> None:
    ours = SemanticIndex(letters, {"en": 0.5}, 10)
    for text in ("怎么重命名文件？", "Как переименовать файл?", "ファイル名の変更"):
        await kept(ours, text, text.encode())
        assert await ours.find(HERE, text) is None
    assert len(ours) == 0
    await ours.aclose()


async def test_a_question_that_is_too_long_is_left_alone() -> None:
    ours = index()
    text = "word " * (LONGEST // 5) + "more"
    await kept(ours, text, b"key")
    assert len(ours) == 0
    await ours.aclose()


async def test_questions_leave_with_their_answers() -> None:
    clock = Clock()
    ours = index(clock=clock)
    await kept(ours, "How do I rename a file?", b"key")
    clock.now += 61
    assert await ours.find(HERE, "How can I rename a file?") is None
    assert len(ours) == 0
    await kept(ours, "How do I rename a file?", b"key")
    ours.forget(HERE, b"key")
    ours.forget(HERE, b"key")
    assert await ours.find(HERE, "How can I rename a file?") is None
    await ours.aclose()


async def test_what_was_not_found_for_longest_leaves_first() -> None:
    ours = index(most=2)
    for word in ("file", "disk"):
        await kept(ours, f"How do I rename a {word}?", word.encode(), word.encode())
    assert await ours.find(b"file", "How can I rename a file?") == b"file"
    await kept(ours, "How do I rename a user?", b"user", b"user")
    assert len(ours) == 2
    assert await ours.find(b"file", "How can I rename a file?") == b"file"
    assert await ours.find(b"disk", "How can I rename a disk?") is None
    await ours.aclose()


async def test_a_key_is_held_once() -> None:
    ours = index()
    await kept(ours, "How do I rename a file?", b"key")
    await kept(ours, "How do I rename a disk?", b"key")
    assert len(ours) == 1
    assert await ours.find(HERE, "How can I rename a file?") is None
    assert await ours.find(HERE, "How can I rename a disk?") == b"key"
    await ours.aclose()


async def test_a_model_that_fails_finds_nothing_and_breaks_nothing() -> None:
    def broken(texts: Sequence[str]) -> Vectors:
        raise RuntimeError("out of memory")

    ours = SemanticIndex(broken, LEAST, 10)
    await kept(ours, "How do I rename a file?", b"key")
    assert await ours.find(HERE, "How do I rename a file?") is None
    assert len(ours) == 0
    await ours.aclose()


class Slow:
    """A model that waits to be let go on; `seen`: the batches that it was given."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []
        self.go = threading.Event()
        self._began = threading.Event()

    async def began(self) -> None:
        """Wait until it has its first batch."""
        await asyncio.to_thread(self._began.wait, 60)

    def __call__(self, texts: Sequence[str]) -> Vectors:
        self.seen.append(list(texts))
        self._began.set()
        self.go.wait(60)
        return letters(texts)


async def test_what_waits_goes_together_and_equal_texts_once() -> None:
    slow = Slow()
    vectors = QuestionVectors(slow)
    texts = ["first", *[f"text {number}" for number in range(BATCH)] * 2]
    asked = [asyncio.create_task(vectors.of(text)) for text in texts]
    await slow.began()
    slow.go.set()
    found = await asyncio.gather(*asked)
    assert all(vector is not None for vector in found)
    assert max(map(len, slow.seen)) <= BATCH
    assert sorted(text for batch in slow.seen for text in batch) == sorted(set(texts))
    await vectors.aclose()


async def test_who_leaves_takes_nothing_from_the_others() -> None:
    slow = Slow()
    vectors = QuestionVectors(slow)
    one, other = (asyncio.create_task(vectors.of("text")) for _ in range(2))
    await slow.began()
    one.cancel()
    slow.go.set()
    assert await other is not None
    with pytest.raises(asyncio.CancelledError):
        await one
    await vectors.aclose()


async def test_no_more_than_so_many_wait() -> None:
    slow = Slow()
    vectors = QuestionVectors(slow)
    asked = [asyncio.create_task(vectors.of(f"text {number}")) for number in range(WAITING)]
    await slow.began()
    assert await vectors.of("one more") is None
    slow.go.set()
    assert all(vector is not None for vector in await asyncio.gather(*asked))
    await vectors.aclose()


async def test_closing_answers_whoever_waits() -> None:
    slow = Slow()
    vectors = QuestionVectors(slow)
    asked = asyncio.create_task(vectors.of("text"))
    await slow.began()
    await vectors.aclose()
    assert await asked is None
    slow.go.set()


def test_few_or_many_vectors_the_nearest_come_first() -> None:
    rows = np.random.default_rng(1).standard_normal((3 * FEW, 32)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    nearest = Nearest()
    for number, row in enumerate(rows):
        nearest.add(number, row)
        (first, cosine), *_ = nearest.search(row, 3)
        assert first == number
        assert cosine == pytest.approx(1.0, abs=1e-3)
    for number in range(len(rows)):
        nearest.remove(number)
        assert number not in [each for each, _ in nearest.search(rows[number], 3)]
    assert len(nearest) == 0
    assert nearest.search(rows[0], 3) == []


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How?", "en"),
        ("Où est la café", "en"),
        ("怎么用 Python？", "zh"),
        ("Как?", None),
        ("ファイル名", None),
        ("어떻게", None),
    ],
)
def test_languages(text: str, language: str | None) -> None:
    assert language_of(text) == language


def test_a_model_without_thresholds_is_refused_with_what_to_do() -> None:
    with pytest.raises(NotCalibrated, match=r"scripts\.cache_calibration some/model"):
        thresholds_of("some/model")
