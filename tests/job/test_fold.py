from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.errors import LedgerError
from job.fold import Claims, members_to_table, shard_of
from job.join import joined
from job.records import Issue, Record, Result, results_to_table, table_to_results
from tests.job.make import record


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), max_size=60))
def test_one_record_stands_for_each_digest_however_often_it_is_claimed(
    claims: list[tuple[int, int]],
) -> None:
    held = Claims()
    first: dict[int, bytes] = {}
    for digest, record_id in claims:
        (stands,) = held.claim([bytes([digest])], [bytes([record_id])])
        assert stands == first.setdefault(digest, bytes([record_id]))


def test_a_full_shard_passes_new_digests_on_and_keeps_the_old() -> None:
    held = Claims(capacity=1)
    assert held.claim([b"a", b"b", b"a"], [b"1", b"2", b"3"]) == [b"1", None, b"1"]


@given(st.text(alphabet="0123456789abcdef", min_size=32, max_size=32), st.integers(1, 8))
def test_a_digest_has_one_shard(digest: str, shards: int) -> None:
    assert 0 <= shard_of(digest, shards) < shards


def one_joined(member: Record, first: Result) -> Result:
    members = members_to_table([(member, first.record.id)])
    (result,) = table_to_results(joined(members, results_to_table([first])))
    return result


def test_a_folded_record_keeps_its_own_text_and_quote() -> None:
    issue = Issue("lease lost", "network", "stated", "check", "high", "lease 7 was lost")
    first = Result(record("lease 7 was lost"), "answered", "problem", (issue,), model="m")
    member = record("lease 8 was lost", source="other.log")
    result = one_joined(member, first)
    assert result.record == member
    assert (result.via, result.represented_by) == ("folded", first.record.id)
    assert (result.outcome, result.model) == ("problem", "m")
    assert result.issues[0].quote == "lease 8 was lost"


def test_what_failed_failed_for_all_it_stands_for() -> None:
    first = Result(record("x"), "failed", reason="refused", provider_message="policy", attempts=1)
    result = one_joined(record("y"), first)
    assert (result.via, result.outcome, result.reason) == ("failed", None, "refused")


def test_each_member_is_behind_its_own_representative() -> None:
    good = Result(record("a"), "recalled", "normal")
    bad = Result(record("b"), "review", "unclear", reason="empty")
    members = [(record(f"{turn}"), (bad if turn % 3 else good).record.id) for turn in range(9)]
    results = table_to_results(joined(members_to_table(members), results_to_table([bad, good])))
    assert [result.record for result in results] == [member for member, _ in members]
    assert [result.via for result in results] == ["folded", "review", "review"] * 3


def test_a_representative_without_a_result_is_an_error() -> None:
    members = members_to_table([(record("y"), "r0")])
    with pytest.raises(LedgerError, match="1 folded records have no representative"):
        joined(members, results_to_table([Result(record("x"), "answered", "normal")]))
