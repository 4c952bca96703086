from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from job.errors import LedgerError
from job.ledger import check, count_vias, lines, make_ledger, sum_counts
from job.records import RESULT_SCHEMA, VIAS, Result, SliceCounts, results_to_table
from job.storage.place import Place
from job.write import write_table
from serve.ask.ask import CallCounts
from tests.job.make import record

MONEY: dict[str, Any] = {
    "usd": None,
    "cost": None,
    "currency": None,
    "unconfirmed": None,
    "by_kind": {},
}


@settings(max_examples=50)
@given(st.lists(st.sampled_from(VIAS), max_size=50), st.integers(0, 9), st.integers(0, 9))
def test_a_true_account_balances_and_a_wrong_one_does_not(
    vias: list[str], rejected: int, skipped: int
) -> None:
    n = len(vias)
    counts = SliceCounts(
        "a", 0, read=n + rejected + skipped, records=n, rejected=rejected, skipped=skipped
    )
    ledger = make_ledger([({"source": "a"}, counts)], Counter(vias), CallCounts(), MONEY)
    check(ledger)
    with pytest.raises(LedgerError):
        check({**ledger, "read": ledger["read"] + 1})
    with pytest.raises(LedgerError):
        check({**ledger, "answered": ledger["answered"] + 1})


def test_slices_sum_to_their_file() -> None:
    one = SliceCounts("a", 0, read=2, records=2, kinds={"operation": 2}, first="2026-01-02")
    two = SliceCounts("a", 1, read=3, records=1, rejected=2, kinds={"feedback": 1}, last="2026")
    total = sum_counts("a", [one, two])
    assert (total.read, total.records, total.rejected) == (5, 3, 2)
    assert total.kinds == {"operation": 2, "feedback": 1}
    assert (total.first, total.last) == ("2026-01-02", "2026")


def test_an_id_that_stands_twice_is_an_error(tmp_path: Path) -> None:
    rows = [Result(record("a"), "answered"), Result(record("b"), "failed")]
    files = [Place.of(tmp_path / f"{name}.parquet") for name in ("1", "2")]
    for file in files:
        write_table(file, [results_to_table(rows)], RESULT_SCHEMA)
    assert count_vias(files[:1]) == Counter(answered=1, failed=1)
    with pytest.raises(LedgerError, match="2 records stand twice"):
        count_vias(files)


def test_the_printed_account_names_every_part() -> None:
    counts = SliceCounts("a", 0, read=3, records=2, rejected=1)
    ledger = make_ledger([({}, counts)], Counter(answered=1, folded=1), CallCounts(), MONEY)
    first, second = lines(ledger)
    assert first == "3 read = 2 records + 1 rejected + 0 skipped"
    assert second.startswith("2 records = 1 answered + 0 recalled + 1 folded")
