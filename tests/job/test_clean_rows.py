"""Every raw record becomes one row, counted once, with an id and a digest that are its own."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, date, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from job.clean.cleaner import Cleaner, CleanSettings, Skipped
from job.records import Raw, Record, Rejected, SliceCounts
from tests.job.cleaning import MASKER, cleaner, record


def test_filters_leave_out_and_are_counted() -> None:
    at_noon = datetime(2026, 3, 10, 12, tzinfo=UTC)
    cleaning = cleaner(
        since=at_noon, until=at_noon + timedelta(hours=1), skip=("health check", "GET /h(1")
    )
    values: list[Any] = [
        {"ts": "2026-03-10T11:59:59Z", "msg": "x"},
        {"ts": "2026-03-10T13:00:00Z", "msg": "x"},
        {"ts": "2026-03-10T12:30:00Z", "msg": "the health check passed"},
        "GET /h(1 again",
        {"ts": "2026-03-10T12:00:00Z", "msg": "stays"},
        {"msg": "no time, stays"},
    ]
    cleaned = [cleaning.clean(Raw("f", n, value, "json")) for n, value in enumerate(values)]
    reasons = [row.reason for row in cleaned if isinstance(row, Skipped)]
    assert reasons == ["since", "until", "skip", "skip"]
    counts = cleaning.counts
    assert (counts.read, counts.skipped, counts.records, counts.rejected) == (6, 4, 2, 0)
    assert counts.skipped_by == {"since": 1, "until": 1, "skip": 2}


def test_a_sample_keeps_the_ids_up_to_a_bound() -> None:
    settings = CleanSettings(date(2026, 3, 10), UTC, MASKER)
    raws = [Raw("f", n, f"line {n}", "text") for n in range(50)]
    whole = [Cleaner(settings, SliceCounts("f", 0)).clean(raw) for raw in raws]
    ids = sorted(row.id for row in whole if isinstance(row, Record))
    sampling = Cleaner(settings, SliceCounts("f", 0), sampled=ids[9])
    kept = [row.id for raw in raws if isinstance(row := sampling.clean(raw), Record)]
    assert sorted(kept) == ids[:10]
    assert sampling.counts.skipped == 40


def test_what_is_empty_or_was_rejected_is_counted_and_masked() -> None:
    cleaning = cleaner()
    empty = cleaning.clean(Raw("f", 0, {"comment": "  ", "rating": 3}, "csv"))
    assert isinstance(empty, Rejected)
    assert empty.reason == "empty"
    broken = cleaning.clean(
        Rejected("f", 9, "bad_json", "near a@example.com", "a@example.com " + "x" * 300)
    )
    assert isinstance(broken, Rejected)
    assert "example" not in broken.detail + broken.excerpt
    assert len(broken.excerpt) <= 200
    assert cleaning.counts.rejected_by == {"empty": 1, "bad_json": 1}
    assert cleaning.counts.read == cleaning.counts.rejected == 2


def test_counts_say_what_a_slice_held() -> None:
    cleaning = cleaner()
    for n, text in enumerate(
        ["2026-03-10 02:00:00 ERROR a@b.cc\u200b", "2026-03-10 01:00:00 磁盘满了"]
    ):
        cleaning.clean(Raw("f", n, text, "text", flags=("bad_bytes",)))
    counts = cleaning.counts
    assert counts.kinds == {"operation": 2}
    assert counts.langs == {"en": 1, "zh": 1}
    assert counts.flags == {"bad_bytes": 2, "zero_width": 1}
    assert counts.masked == {"email": 1}
    assert (counts.first, counts.last) == ("2026-03-10T01:00:00+00:00", "2026-03-10T02:00:00+00:00")


def test_equal_records_have_equal_digests_and_others_not() -> None:
    def digest(value: Any) -> str:
        return record(value).digest

    log = {"msg": "lease failed for 30 s", "level": "warn", "ts": "2026-03-10T01:00:00Z"}
    assert digest(log) == digest(
        log | {"msg": "lease failed for 45 s", "ts": "2026-03-10T02:00:00Z"}
    )
    assert digest(log) != digest(log | {"level": "error"})
    assert digest(log) != digest(log | {"service": "pay"})
    assert digest({"msg": "status=500"}) != digest({"msg": "status=404"})
    assert digest({"comment": "30", "rating": 1}) != digest({"comment": "30", "rating": 2})
    assert digest({"comment": "paid 30"}) != digest({"comment": "paid 45"})


def test_ids_come_from_the_place_alone() -> None:
    one = cleaner().clean(Raw("a.log", 1, "x", "text"))
    same = cleaner(kind="feedback").clean(Raw("a.log", 1, "other", "text"))
    other = cleaner().clean(Raw("a.log", 2, "x", "text"))
    assert isinstance(one, Record)
    assert isinstance(same, Record)
    assert isinstance(other, Record)
    assert one.id == same.id != other.id
    assert one.id.startswith("r")


def test_a_long_record_takes_the_slow_lane_uncut() -> None:
    found = record("word " * 2000)
    assert found.lane == "slow"
    assert found.tokens >= 2000
    assert len(found.text) == 9999


_NAMES = st.sampled_from(
    [
        "messages",
        "content",
        "role",
        "level",
        "rating",
        "time",
        "user",
        "msg",
        "text",
        "log",
        "评分",
        "x",
        "",
    ]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(_NAMES | st.text(max_size=4), inner, max_size=5)
    ),
    max_leaves=20,
)


@settings(max_examples=80)
@given(
    st.dictionaries(_NAMES, _JSON, max_size=6) | st.lists(_JSON, max_size=4) | st.text(max_size=60),
    st.sampled_from([None, "conversation", "operation", "feedback"]),
    st.dictionaries(
        st.sampled_from(["text", "time", "user", "level"]),
        st.sampled_from(["x", "log.level", "a.b"]),
    ),
)
def test_any_value_becomes_one_row_the_same_each_time(
    value: Any, kind: Any, mapped: dict[str, str]
) -> None:
    raw = Raw("f", 1, value, "json")
    cleaning = cleaner(kind=kind, map=mapped)
    first, second = cleaning.clean(raw), cleaning.clean(raw)
    assert first == second
    if isinstance(first, Record):
        first.text.encode()
        assert first.text.strip() == first.text != ""
        assert MASKER.mask(first.text) == (first.text, {})
    counts = cleaning.counts
    assert counts.read == counts.records + counts.rejected + counts.skipped == 2


def test_deep_nesting_is_no_trouble() -> None:
    deep: Any = "bottom"
    for _ in range(5000):
        deep = [deep]
    assert "bottom" in record({"msg": "x", "deep": deep}).text
    assert "bottom" in record({"messages": [{"role": "user", "content": {"text": deep}}]}).text


def test_what_is_remembered_does_not_grow_with_long_names() -> None:
    cleaning = cleaner()
    cleaning.clean(Raw("a", 0, {"msg": "x"}, "json"))
    tracemalloc.start()
    for number in range(40):
        value = {f"{number:02}" * 10_000: 1, "user": f"{number:02}" * 10_000, "msg": "x"}
        cleaning.clean(Raw("a", number, value, "json"))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 800_000
