"""100,000 answers put and got in batches: the store, and its actor, against plain SQLite.

Plain SQLite is what one would write without a store: one process, one table, a batch a transaction,
`SELECT ... IN`. Each is measured in processes of its own, in turns; the best of its rounds counts.
Memory is the peak of the process that holds the store, once all answers are in, and once three
times as many are.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import multiprocessing
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from scripts.benchmarks.checks import Bar, print_table, verdict
from serve.ask.answers import KEYS_A_QUERY, Answers
from serve.ask.answers_actor import AnswersActor, RayAnswers, start_answers

_GROWTH = 3
"""Memory is looked at again at so many times the answers."""
_IN_FLIGHT = 8
"""Batches that wait for the actor at a time: as many blocks of records as a run has under way."""
_STORE_BAR, _ACTOR_BAR = 1.5, 3.0
"""Times plain SQLite. The store keeps a time and an index by it beside; the actor has each batch
copied to another process and back, which costs about as much as SQLite itself."""
_MEMORY_BAR = 24
"""MiB of growth: the pages that the store keeps in memory are 16 MB, which it may not have filled
before."""

Batch = list[tuple[bytes, bytes]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone."""
    parser.add_argument("--answers", type=int, default=100_000, help="put and got")
    parser.add_argument("--batch", type=int, default=256, help="answers put or got at once")
    parser.add_argument("--rounds", type=int, default=3, help="of which the best one counts")


@dataclass(frozen=True, slots=True)
class Size:
    """How many answers, in batches of how many."""

    answers: int
    batch: int


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds for all answers, and MiB of memory at the peak: with all, with `_GROWTH` times all;
    0.0 where that was not asked."""

    put: float
    get: float
    peak: float = 0.0
    later: float = 0.0


def batches(size: Size, part: int = 0) -> Iterator[Batch]:
    """Answers as long as those of a day are: 150 to 700 bytes of JSON, another text in each."""
    pick = random.Random(part)
    first = part * size.answers
    for start in range(first, first + size.answers, size.batch):
        batch: Batch = []
        for number in range(start, min(start + size.batch, first + size.answers)):
            key = hashlib.blake2b(number.to_bytes(8, "big"), digest_size=32).digest()
            text = key.hex() * pick.randrange(1, 10)
            batch.append((key, b'{"answer":{"event":"%s"},"model":"large"}' % text.encode()))
        yield batch


def _peak() -> float:
    """MiB of memory that this process has held at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def _shuffled(size: Size) -> Iterator[list[bytes]]:
    """The keys in batches, in another order."""
    keys = [key for batch in batches(size) for key, _ in batch]
    random.Random(1).shuffle(keys)
    for start in range(0, len(keys), size.batch):
        yield keys[start : start + size.batch]


def _timed(
    size: Size,
    put: Callable[[Batch], object],
    get: Callable[[list[bytes]], Sequence[object]],
) -> Took:
    putting = getting = 0.0
    for batch in batches(size):
        began = time.perf_counter()
        put(batch)
        putting += time.perf_counter() - began
    for keys in _shuffled(size):
        began = time.perf_counter()
        found = get(keys)
        getting += time.perf_counter() - began
        if len(found) != len(keys):
            raise RuntimeError(f"{len(keys) - len(found)} answers are not there")
    return Took(putting, getting)


def plain(path: Path, size: Size) -> Took:
    """SQLite as it comes."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("CREATE TABLE answers (key BLOB PRIMARY KEY, value BLOB NOT NULL)")

    def put(batch: Batch) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?)", batch)
        connection.execute("COMMIT")

    def get(keys: list[bytes]) -> list[object]:
        found: list[object] = []
        for start in range(0, len(keys), KEYS_A_QUERY):
            some = keys[start : start + KEYS_A_QUERY]
            marks = ",".join("?" * len(some))
            query = f"SELECT key, value FROM answers WHERE key IN ({marks})"  # noqa: S608
            found += connection.execute(query, some).fetchall()
        return found

    return _timed(size, put, get)


def store(path: Path, size: Size) -> Took:
    """`Answers` in this process."""
    with Answers(path) as answers:
        return _timed(size, answers.put_many, lambda keys: list(answers.get_many(keys)))


def grown(path: Path, size: Size) -> Took:
    """The memory of the process that hosts the store, without a clock."""
    actor = AnswersActor(path)
    peaks = []
    for part in range(_GROWTH):
        for batch in batches(size, part):
            actor.put_many(batch)
            actor.get_many([key for key, _ in batch])
        peaks.append(_peak())
    return Took(0.0, 0.0, peaks[0], peaks[-1])


def through_actor(path: Path, size: Size) -> Took:
    """The store through its actor, as a run uses it: several batches wait at a time."""
    import ray

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        return asyncio.run(_through_actor(RayAnswers(start_answers(path)), size))
    finally:
        ray.shutdown()


async def _through_actor(answers: RayAnswers, size: Size) -> Took:
    await answers.get_many([])  # The actor is there.
    seconds = []
    puts = [lambda b=batch: answers.put_many(b) for batch in batches(size)]
    gets = [lambda k=keys: answers.get_many(k) for keys in _shuffled(size)]
    for calls in (puts, gets):
        began = time.perf_counter()
        waiting = iter(calls)

        async def one_after_another(waiting: Iterator[Callable[[], object]] = waiting) -> int:
            return sum([len(await call() or ()) for call in waiting])  # type: ignore[misc]

        found = sum(await asyncio.gather(*(one_after_another() for _ in range(_IN_FLIGHT))))
        seconds.append(time.perf_counter() - began)
    if found != size.answers:
        raise RuntimeError(f"{size.answers - found} answers are not there")
    return Took(*seconds)


def _in_a_process(work: Callable[[Path, Size], Took], path: Path, size: Size) -> Took:
    # The way `scripts/bench` is started, its own module cannot be imported by a spawned one.
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(work, path, size).result()


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    size = Size(args.answers, args.batch)
    ways = {"plain SQLite": plain, "the store": store, "through its actor": through_actor}
    took: dict[str, list[Took]] = {name: [] for name in ways}
    for number in range(args.rounds):
        for name, work in ways.items():
            path = args.folder / f"{work.__name__}-{number}" / "answers.db"
            path.parent.mkdir()
            took[name].append(_in_a_process(work, path, size))
            for file in path.parent.iterdir():
                file.unlink()
    memory = _in_a_process(grown, args.folder / "grown.db", size)
    best = {
        name: Took(min(one.put for one in some), min(one.get for one in some))
        for name, some in took.items()
    }
    base = best["plain SQLite"]
    print_table(
        (
            f"{size.answers:,} answers, {size.batch} at once",
            "put",
            "get",
            "put, ratio",
            "get, ratio",
        ),
        [
            (
                name,
                f"{one.put:.2f} s",
                f"{one.get:.2f} s",
                f"{one.put / base.put:.2f}",
                f"{one.get / base.get:.2f}",
            )
            for name, one in best.items()
        ],
    )
    more = size.answers * _GROWTH
    print(f"memory: {memory.peak:.0f} MiB, with {more:,} answers {memory.later:.0f} MiB\n")
    kept, asked = best["the store"], best["through its actor"]
    return verdict(
        [
            Bar("store, put, times plain SQLite", round(kept.put / base.put, 2), "<=", _STORE_BAR),
            Bar("store, get, times plain SQLite", round(kept.get / base.get, 2), "<=", _STORE_BAR),
            Bar("actor, put, times plain SQLite", round(asked.put / base.put, 2), "<=", _ACTOR_BAR),
            Bar("actor, get, times plain SQLite", round(asked.get / base.get, 2), "<=", _ACTOR_BAR),
            Bar("MiB of growth", round(memory.later - memory.peak, 1), "<=", _MEMORY_BAR),
        ]
    )
