"""Ranges of what varied in operation logs that say the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.fold.varied import SHOWN, SLOTS, Varied


def counted(*texts: str) -> Varied:
    varied = Varied()
    for text in texts:
        varied.add(text)
    return varied


def shown(*texts: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in counted(*texts).rows()]


@pytest.mark.parametrize(
    ("texts", "ranges"),
    [
        (
            ["lease renewal failed, 356 s", "lease renewal failed, 30 s"],
            [("lease renewal failed,", "", 30, 356, "s")],
        ),
        (
            ["订单 20260314 支付超时，耗时 350 毫秒", "订单 7 支付超时，耗时 3.2 秒"],
            [("订单 … 支付超时，耗时", "", 0.35, 3.2, "秒")],
        ),
        (
            ["disk 91% full on web-1", "disk 99.5% full on web-2"],
            [("disk", "full on", 91, 99.5, "%")],
        ),
        (
            ["db-1 refused: errno 111 after 3 retries", "db-2 refused: errno 111 after 5 retries"],
            [("db-… refused: errno 111 after", "", 3, 5, "retries")],
        ),
        (
            ["read 1,024 bytes from cache", "read 2 KB from cache", "read 1 MB from cache"],
            [("read", "from cache", 1024, 1048576, "bytes")],
        ),
        (
            ["result size=12 written", "result size=70 written"],
            [("result size=", "written", 12, 70, None)],
        ),
        # One value, ids, ports, lines, dates and versions make no range.
        (["lease lost, 30 s", "lease lost, 30 s"], []),
        (
            [
                "pid 7 port 8080 line 12 at 2026-01-02 10:00:01 v1.2",
                "pid 9 port 81 line 1 at 2026-02-02 11:00:01 v1.3",
            ],
            [],
        ),
        (["order 7 lost", "order 9 lost"], []),
    ],
)
def test_ranges(texts: list[str], ranges: list[tuple[Any, ...]]) -> None:
    assert shown(*texts) == ranges


def test_numbers_between_other_words_are_not_put_together() -> None:
    assert shown("renewed in 3 s", "failed in 300 s") == []


def test_most_records_come_first_and_few_ranges_are_shown() -> None:
    texts = [f"step{letter} took {n} ms" for letter in "abcd" for n in (1, 2)]
    rows = counted(*texts, "stepc took 9 ms").rows()
    assert len(rows) == SHOWN
    assert (rows[0]["label_before"], rows[0]["max"]) == ("stepc took", 9)


_TEXTS = st.lists(
    st.builds(
        "{} took {} {} {}".format,
        st.text(alphabet="abcdefghij", min_size=1, max_size=2),
        st.integers(0, 10**6) | st.floats(0, 100, allow_nan=False).map(lambda n: f"{n:.3f}"),
        st.sampled_from(["ms", "s", "KB", "bytes", "times", "%"]),
        st.sampled_from(["", "to write", "for user anna"]),
    ),
    max_size=120,
)


@given(_TEXTS, st.integers(0, 120), st.randoms(use_true_random=False))
def test_parts_merge_to_the_whole_in_any_order(texts: list[str], at: int, rng: Any) -> None:
    whole = counted(*texts)
    shuffled = list(texts)
    rng.shuffle(shuffled)
    one, other = counted(*shuffled[:at]), counted(*shuffled[at:])
    other.absorb(one)
    assert other == whole
    assert len(whole.ranges) <= SLOTS


@given(st.text(max_size=80))
def test_any_text_can_be_looked_at(text: str) -> None:
    counted(text, text).rows()
