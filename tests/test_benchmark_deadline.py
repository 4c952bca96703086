"""What `scripts/bench deadline` counts."""

from __future__ import annotations

from job.records import Record
from scripts.benchmarks.deadline import cut_step, halves_apart, inversions, step_inversions
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


def test_within_a_class_low_ratings_and_warnings_come_first_in_each_lane() -> None:
    bad, good = (record(f"{n} stars", kind="feedback", rating=n) for n in (1.0, 5.0))
    assert step_inversions([bad], [good]) == 0
    assert step_inversions([good], [bad]) == 1
    warning = record("disk nearly full", level="warning")
    assert step_inversions(entries(0, 1), [warning]) == 1
    assert step_inversions([record("a long one", lane="slow")], [warning]) == 0


def test_a_deadline_between_two_classes_cuts_none() -> None:
    assert cut_step([ERROR, *entries(0, 2)], entries(2, 5)) == (2, 3)
    assert cut_step([ERROR], entries(2, 5)) == (0, 3)


def test_asking_in_file_order_shows() -> None:
    assert halves_apart([ERROR, *entries(0, 50)], entries(50, 100)) == 1
    every_other = entries(0, 100)
    assert halves_apart([ERROR, *every_other[::2]], every_other[1::2]) == 0
    # nothing of the class that was left out was asked
    assert halves_apart([ERROR], entries(0, 10)) == 0
