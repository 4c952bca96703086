"""The parts of the benchmark of flat memory: its inputs, and what memory is counted."""

from __future__ import annotations

import mmap
import os

import pytest

from job.fold.template import template
from scripts.benchmarks.flat_memory import Sentence, distinct, log_lines, repeating
from scripts.benchmarks.memory import Watch, held_by

LINES = 2_000
MIB = 2**20


def messages(sentence: Sentence) -> list[str]:
    """What the lines say after time, level and service."""
    return [line.split(": ", 1)[1] for line in log_lines(LINES, sentence, seed=1, share=0.1)]


def test_distinct_lines_differ_in_more_than_what_varies() -> None:
    assert len({template(said) for said in messages(distinct)}) == LINES


def test_repeating_lines_differ_in_what_varies_alone() -> None:
    said = messages(repeating)
    assert len(set(said)) > LINES * 0.9
    assert len({template(each) for each in said}) < 20


@pytest.mark.parametrize("sentence", [distinct, repeating])
def test_a_share_of_the_lines_tells_of_a_problem(sentence: Sentence) -> None:
    bad = sum(" ERROR " in line for line in log_lines(LINES, sentence, seed=1, share=0.1))
    assert 0.05 < bad / LINES < 0.15


def test_shared_memory_is_told_apart_from_what_a_process_holds() -> None:
    before = held_by(os.getpid())
    shared = mmap.mmap(-1, 64 * MIB)
    own = mmap.mmap(-1, 32 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    shared.write(b"x" * (64 * MIB))
    own.write(b"x" * (32 * MIB))
    after = held_by(os.getpid())
    assert after.shared - before.shared >= 60 * MIB
    assert 28 * MIB <= after.own - before.own < 60 * MIB


def test_the_highest_look_tells_which_process_held_what() -> None:
    watch = Watch(os.getpid())
    watch.look()
    names = [name for name, _ in watch.highest.held]
    assert any("python" in name or "pytest" in name for name in names)
    assert watch.highest.own == sum(held.own for _, held in watch.highest.held) > 0
    assert watch.peak >= watch.highest.own
