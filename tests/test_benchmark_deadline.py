"""What `scripts/bench deadline` counts."""

from __future__ import annotations

from job.records import Record
from scripts.benchmarks.deadline import halves_apart, inversions
from tests.job.make import record

ERROR = record("order lost", level="error")
CHAT = record("user: hello", kind="conversation")


def entries(first: int, last: int) -> list[Record]:
    """Ordinary entries at these places of a file."""
    return [record(f"request {n} served", position=n) for n in range(first, last)]


def test_what_was_left_out_although_less_important_was_asked_is_counted() -> None:
    assert inversions([ERROR, CHAT], entries(0, 3)) == 0
    assert inversions([ERROR, *entries(0, 1)], [CHAT, *entries(1, 3)]) == 1
    assert inversions([], [ERROR]) == 0
    assert inversions([ERROR], []) == 0


def test_asking_in_file_order_shows() -> None:
    assert halves_apart([ERROR, *entries(0, 50)], entries(50, 100)) == 1
    every_other = entries(0, 100)
    assert halves_apart([ERROR, *every_other[::2]], every_other[1::2]) == 0
    # nothing of the class that was left out was asked
    assert halves_apart([ERROR], entries(0, 10)) == 0
