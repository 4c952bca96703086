from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.errors import LedgerError
from job.fold.folding import DIGEST_BYTES, ID_BYTES, Claims, members_to_table, shard_of
from job.fold.join import joined
from job.records import Issue, Record, Result, results_to_table, table_to_results
from tests.job.make import record


def claim(held: Claims, *claims: tuple[int, int]) -> list[int | None]:
    """Claim digests for ids; the id that stands for each."""
    digests = b"".join(digest.to_bytes(DIGEST_BYTES, "big") for digest, _ in claims)
    ids = b"".join(record_id.to_bytes(ID_BYTES, "big") for _, record_id in claims)
    first, known = held.claim(digests, ids)
    numbers = [int.from_bytes(first[i : i + ID_BYTES], "big") for i in range(0, len(first), 8)]
    return [number if there else None for number, there in zip(numbers, known, strict=True)]


# Digests that name the same slot of a small table, and that differ in either half alone.
DIGESTS = st.one_of(st.integers(0, 40), st.integers(0, 3).map(lambda n: n << 64))


@given(st.lists(st.tuples(DIGESTS, st.integers(0, 2**64 - 1)), max_size=60), st.integers(1, 30))
def test_one_record_stands_for_each_digest_however_often_it_is_claimed(
    claims: list[tuple[int, int]], capacity: int
) -> None:
    held = Claims(capacity)
    first: dict[int, int] = {}
    for digest, record_id in claims:
        if len(first) < capacity:
            first.setdefault(digest, record_id)
        assert claim(held, (digest, record_id)) == [first.get(digest)]


def test_a_full_shard_passes_new_digests_on_and_keeps_the_old() -> None:
    assert claim(Claims(capacity=1), (7, 1), (8, 2), (7, 3)) == [1, None, 1]


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
