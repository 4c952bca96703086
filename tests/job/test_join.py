"""Folded records and the answers of those who stand for them, from file to file."""

from __future__ import annotations

from pathlib import Path

import pytest

from job.errors import LedgerError
from job.fold import join
from job.fold.folding import MEMBER_SCHEMA, members_to_table
from job.fold.join import join_members
from job.records import RESULT_SCHEMA, Result, results_to_table, table_to_results
from job.run_folder import RunFolder
from job.storage.place import Place
from job.write import read_tables, write_table
from tests.job.make import record

FIRST = [Result(record(f"first {n}"), "answered", "normal", model=f"m{n}") for n in range(7)]
MEMBERS = [(record(f"member {n}"), FIRST[n % 7].record.id) for n in range(40)]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run's folder: two files of answers, two slices with members in two shares."""
    folder = RunFolder(Place.of(tmp_path))
    for number in range(2):
        answers = [results_to_table(FIRST[number::2])]
        write_table(folder.asked / f"{number}.parquet", answers, RESULT_SCHEMA)
        for share in range(2):
            members = [members_to_table(MEMBERS[2 * number + share :: 4])]
            place = folder.members / str(share) / f"{number}.parquet"
            write_table(place, members, MEMBER_SCHEMA)
    return folder


@pytest.mark.parametrize("at_once", [2, 50])
def test_every_member_becomes_one_result_however_few_answers_are_held_at_once(
    folder: RunFolder, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join, "REPRESENTATIVES", at_once)
    results = [
        result for table in read_tables(join_members(folder)) for result in table_to_results(table)
    ]
    joined = {result.record: (result.represented_by, result.model) for result in results}
    assert len(results) == len(MEMBERS)
    assert joined == {
        member: (first, f"m{number % 7}") for number, (member, first) in enumerate(MEMBERS)
    }


def test_a_lost_answer_is_an_error(folder: RunFolder) -> None:
    (folder.asked / "1.parquet").unlink()
    with pytest.raises(LedgerError, match="have no representative"):
        join_members(folder)
