"""Which records matter most: by what they say, never by where they stand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from job.ration.importance import RANK, Importance, class_of, importance, rank_of, with_ranks
from job.records import KINDS, RECORD_SCHEMA, records_to_table
from tests.job.make import record

ERROR = record("the order was lost", level="error", lang="en")
HIDDEN = record("connection refused by the database, giving up", level="info", lang="en")
ORDINARY = record("request served in 12 ms", level="info", lang="en")
WARNING = record("cache is 80 % full", level="warning", lang="en")
CHAT = record("user: hello\nassistant: hello", kind="conversation", lang="en")
ANGRY = record("never again", kind="feedback", rating=1.0, lang="en")
SILENT = record("the colours", kind="feedback", lang="en")
HAPPY = record("good", kind="feedback", rating=5.0, lang="en")


def test_errors_come_first_then_feedback_then_conversations_then_the_rest() -> None:
    some = [ORDINARY, WARNING, CHAT, HAPPY, SILENT, ANGRY, ERROR]
    assert sorted(some, key=rank_of) == [ERROR, ANGRY, SILENT, HAPPY, CHAT, WARNING, ORDINARY]


def test_an_entry_that_tells_of_a_failure_is_an_error_at_any_level() -> None:
    assert importance(HIDDEN) is importance(ERROR) is Importance.ERROR
    assert importance(ORDINARY) is importance(WARNING) is Importance.ORDINARY


def test_a_conversation_with_an_error_level_is_an_error() -> None:
    assert importance(record(kind="conversation", level="critical")) is Importance.ERROR


def test_inside_a_class_the_files_are_mixed() -> None:
    some = [record(f"request {n} served", source=f"{n // 100}.log") for n in range(400)]
    first = sorted(some, key=rank_of)[:40]
    assert {each.source for each in first} == {"0.log", "1.log", "2.log", "3.log"}


def test_records_that_say_the_same_stand_at_the_same_place_in_any_file() -> None:
    assert rank_of(record("x", source="a")) == rank_of(record("x", source="b", position=9))


levels = st.sampled_from((None, "debug", "info", "warning", "error", "critical"))
ratings = st.none() | st.floats(-1000, 1000)


@given(st.text(max_size=30), st.sampled_from(KINDS), levels, ratings)
def test_a_rank_fits_its_column_and_names_its_class(
    text: str, kind: str, level: str | None, rating: float | None
) -> None:
    made = record(text, kind=kind, level=level, rating=rating)
    rank = rank_of(made)
    assert 0 <= rank < 2**63
    assert class_of(rank) is importance(made)


def test_a_block_keeps_its_records_beside_their_ranks() -> None:
    block = records_to_table([ERROR, CHAT])
    ranked = with_ranks(block)
    assert ranked.select(RECORD_SCHEMA.names).equals(block)
    assert ranked[RANK].to_pylist() == [rank_of(ERROR), rank_of(CHAT)]
    assert with_ranks(block.slice(0, 0)).num_rows == 0
