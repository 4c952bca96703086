"""Lines that stand for several messages."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from job.records import Raw, Record
from tests.job.cleaning import cleaner
from tests.job.reading import planned, records, rows_of

BOOM = "Mar  5 12:00:00 db1 app[1]: boom"


def test_a_message_repeated_five_times_counts_five(tmp_path: Path) -> None:
    line = b"Mar  5 12:00:30 db1 app[1]: message repeated 5 times: [ boom]\n"
    cleaning = cleaner()
    rows = [
        cleaning.clean(raw) for raw in records(tmp_path / "a.log", BOOM.encode() + b"\n" + line)
    ]
    found = [row for row in rows if isinstance(row, Record)]
    assert [row.text for row in found] == ["db1 app[1]: boom"] * 6
    assert len({row.id for row in found}) == 6
    assert len({row.digest for row in found}) == 1
    assert [row.position for row in found] == [0] + [33] * 5
    assert [row.flags for row in found] == [()] + [("repeated",)] * 5
    assert (cleaning.counts.read, cleaning.counts.records) == (6, 6)


def test_the_last_message_repeated_is_the_one_before(tmp_path: Path) -> None:
    text = (
        f"{BOOM}\n"
        "Mar  5 12:00:30 db1 last message repeated 2 times\n"
        "Mar  5 12:01:30 db1 last message repeated 1 time\n"
        "Mar  5 12:02:00 db2 last message repeated 9 times\n"
        "Mar  5 12:02:30 db1 app[1]: fine\n"
    )
    for slice_bytes in (10, 1 << 20):
        file = planned(tmp_path / "a.log", text.encode(), slice_bytes)
        found = [row for row in rows_of(file) if isinstance(row, Raw)]
        assert [row.value for row in found] == [
            BOOM,
            *["Mar  5 12:00:30 db1 app[1]: boom"] * 2,
            "Mar  5 12:01:30 db1 app[1]: boom",
            "Mar  5 12:02:00 db2 last message repeated 9 times",
            "Mar  5 12:02:30 db1 app[1]: fine",
        ]
        assert [row.copy for row in found] == [0, 0, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", '{"host": "h", "message": "message repeated 3 times: [ boom]"}\n'),
        ("a.csv", 'host,message\nh,"message repeated 3 times: [ boom]"\n'),
    ],
)
def test_a_repeated_message_in_a_field(tmp_path: Path, name: str, data: str) -> None:
    found = records(tmp_path / name, data.encode())
    assert [row.value for row in found] == [{"host": "h", "message": "boom"}] * 3


def test_a_count_that_cannot_be_is_one_record_and_a_flag(tmp_path: Path) -> None:
    line = "Mar  5 12:00:30 db1 app[1]: message repeated 1000000000 times: [ boom]"
    (found,) = records(tmp_path / "a.log", f"{line}\n".encode())
    assert (found.value, found.flags) == (line, ("repeats_not_believed",))


def test_who_talks_of_repeats_does_not_repeat(tmp_path: Path) -> None:
    lines = [
        "Mar  5 12:00:00 db1 app[1]: saw message repeated 3 times: [ x ]",
        "Mar  5 12:00:01 db1 app[1]: message repeated often",
        "Mar  5 12:00:02 db1 app[1]: message repeated 0 times: [ x ]",
    ]
    assert [row.value for row in records(tmp_path / "a.log", "\n".join(lines).encode())] == lines


def test_a_mark_without_an_end_costs_linear_time(tmp_path: Path) -> None:
    line = BOOM.encode() + b": message repeated 2 times: [ x" * 10_000
    began = time.process_time()
    assert len(records(tmp_path / "a.log", line)) == 1
    assert time.process_time() - began < 3
