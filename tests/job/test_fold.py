from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from job.fold import Claims, join_member, members_to_table, shard_of
from job.records import Issue, Result, results_to_table
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


def test_a_folded_record_keeps_its_own_text_and_quote() -> None:
    issue = Issue("lease lost", "network", "stated", "check", "high", "lease 7 was lost")
    first = Result(record("lease 7 was lost"), "answered", "problem", (issue,), model="m")
    member = record("lease 8 was lost", source="other.log")
    (row,) = members_to_table([(member, first.record.id)]).to_pylist()
    (answer,) = results_to_table([first]).to_pylist()
    joined = join_member(row, answer)
    assert joined.record == member
    assert (joined.via, joined.represented_by) == ("folded", first.record.id)
    assert joined.issues[0].quote is not None
    assert joined.issues[0].quote in member.text


def test_what_failed_failed_for_all_it_stands_for() -> None:
    first = Result(record("x"), "failed", reason="refused", provider_message="policy", attempts=1)
    (row,) = members_to_table([(record("y"), first.record.id)]).to_pylist()
    (answer,) = results_to_table([first]).to_pylist()
    joined = join_member(row, answer)
    assert (joined.via, joined.outcome, joined.reason) == ("failed", None, "refused")
