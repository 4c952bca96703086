"""Raw records of every shape -> their kind, text and fields, each counted once."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from job.clean import Cleaner, CleanSettings, Skipped
from job.mask import Masker
from job.records import Raw, Record, Rejected, SliceCounts

MASKER = Masker(b"k" * 32)
SHANGHAI = timezone(timedelta(hours=8))


def cleaner(**changes: Any) -> Cleaner:
    plain: dict[str, Any] = {"reference": date(2026, 3, 10), "zone": UTC, "masker": MASKER}
    return Cleaner(CleanSettings(**(plain | changes)), SliceCounts("day.log", 0))


def record(value: Any, **changes: Any) -> Record:
    form: Literal["text", "json"] = "text" if isinstance(value, str) else "json"
    cleaned = cleaner(**changes).clean(Raw("day.log", 7, value, form))
    assert isinstance(cleaned, Record)
    return cleaned


def test_a_chat_becomes_one_line_a_turn() -> None:
    chat = {
        "chat_id": "c-1",
        "user_id": "zhang@example.com",
        "created_at": "2026-03-10T08:00:00+08:00",
        "messages": [
            {"role": "user", "content": "我付了两次款", "created_at": "2026-03-10T08:00:01+08:00"},
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "Let me look."}, {"type": "image_url"}],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"function": {"name": "find_order", "arguments": '{"id": 1}'}}],
            },
            {"role": "tool", "content": {"text": "paid twice"}},
        ],
        "model": "m-1",
    }
    found = record(chat)
    assert found.kind == "conversation"
    assert found.text == (
        "user: 我付了两次款\nassistant: Let me look.\n[image_url]\n"
        'assistant: [call find_order({"id": 1})]\ntool: paid twice'
    )
    assert found.time == datetime(2026, 3, 10, tzinfo=UTC)
    assert found.session == "c-1"
    assert found.user is not None
    assert found.user.startswith("<email-")
    assert (found.lang, found.lane, found.level, found.rating) == ("en", "fast", None, None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            {"turns": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "yes"}]},
            "human: hi\ngpt: yes",
        ),
        ({"messages": [{"message": "在吗"}, {"message": "在", "attrs": [{"a": 1}]}]}, "在吗\n在"),
        ({"dialogue": [["agent", "Hi!"], ["customer", "Hello"]]}, "agent: Hi!\ncustomer: Hello"),
        (
            {"original": [["agent", "Hi!"]], "delexed": [{"speaker": "agent", "text": "hi!"}]},
            "agent: Hi!",
        ),
        ({"conversation": {"id": 3, "messages": [{"role": "user", "content": "x"}]}}, "user: x"),
        (
            {"anything": [{"speaker": "A", "utterance": "x"}, {"speaker": "B", "utterance": "y"}]},
            "A: x\nB: y",
        ),
        ({"prompt": "why?", "response": "because"}, "user: why?\nassistant: because"),
        (
            {"对话": [{"角色": "用户", "内容": "退款"}, {"角色": "客服", "内容": "好"}]},
            "用户: 退款\n客服: 好",
        ),
        ({"messages": ["hello", "hi there"]}, "hello\nhi there"),
        ({"transcript": "User: hi\nAgent: hello"}, "User: hi\nAgent: hello"),
        (
            [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}],
            "user: x\nassistant: y",
        ),
        ("用户：怎么退款\n客服：请稍等", "用户：怎么退款\n客服：请稍等"),
        (
            {"messages": [{"author": {"role": "user"}, "content": {"parts": ["a", "b"]}}]},
            "user: a\nb",
        ),
    ],
)
def test_conversations_of_many_shapes(value: Any, text: str) -> None:
    found = record(value)
    assert (found.kind, found.text) == ("conversation", text)


def test_a_conversation_without_a_time_takes_its_first_turns() -> None:
    turns = [{"role": "user", "content": "x", "ts": 1_773_100_800}]
    assert record({"messages": turns}).time == datetime(2026, 3, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "text", "rating"),
    [
        ({"reviewbody": "味道不错", "star": "4.0", "dish_taste": "1"}, "味道不错", 4.0),
        ({"title": "Late", "body": "It came late.", "stars": 2}, "Late\nIt came late.", 2.0),
        ({"user": "u1", "message": "Great app", "rating": "5星"}, "Great app", 5.0),
        ({"评价": "很好", "评分": "★★★★☆"}, "很好", 4.0),
        ({"comment": "meh", "score": "3/5"}, "meh", 3.0),
        ({"feedback": "no rating here"}, "no rating here", None),
    ],
)
def test_feedback(value: Any, text: str, rating: float | None) -> None:
    found = record(value)
    assert (found.kind, found.text, found.rating) == ("feedback", text, rating)


def test_an_operation_has_its_message_first_and_then_what_else_it_says() -> None:
    event = {
        "ts": "2026-03-10T01:02:03Z",
        "lvl": "WARN",
        "service": "pay",
        "host": "web-1",
        "userId": 1207,
        "msg": "charge failed",
        "errorCode": "E1234",
        "request": {"amount": 12.5, "items": ["a", "b"], "note": None, "card": {"last4": "4242"}},
        "retry": False,
        "empty": "",
    }
    found = record(event)
    assert found.text == (
        "charge failed service=pay errorCode=E1234 request.amount=12.5 request.items=a, b "
        "request.card.last4=4242 retry=false"
    )
    assert (found.kind, found.level, found.user) == ("operation", "warning", "1207")
    assert (found.service, found.host) == ("pay", "web-1")
    assert found.time == datetime(2026, 3, 10, 1, 2, 3, tzinfo=UTC)
    assert found.flags == ()


def test_what_is_not_understood_as_a_field_stays_in_the_text() -> None:
    found = record({"time": "soon", "level": "gold", "msg": "x"})
    assert found.text == "x time=soon level=gold"
    assert (found.time, found.level, found.flags) == (None, None, ("bad_time",))


def test_a_message_with_a_head_of_its_own_gives_its_time_and_level() -> None:
    found = record({"log": "2026-03-10 01:02:03 ERROR disk full\n", "stream": "stderr"})
    assert found.text == "disk full stream=stderr"
    assert (found.level, found.time) == ("error", datetime(2026, 3, 10, 1, 2, 3, tzinfo=UTC))


def test_an_object_without_a_text_is_rendered_whole_and_says_so() -> None:
    found = record({"a": 1, "b": {"c": "x"}})
    assert (found.kind, found.text, found.flags) == ("operation", "a=1 b.c=x", ("unmapped",))


def test_credentials_in_fields_are_masked_whole() -> None:
    found = record({"msg": "login", "params": {"password": "three little words"}})
    assert "little" not in found.text
    assert found.text.startswith("login params.password=<secret-")


def test_a_map_names_the_fields_and_a_kind_overrides_the_shape() -> None:
    data = {
        "when": 1_773_100_800,
        "data": {"said": "slow", "who": "u1"},
        "grade": "2",
        "content": "z",
    }
    paths = {"text": "data.said", "time": "when", "user": "data.who", "rating": "grade"}
    found = record(data, kind="feedback", map=paths)
    assert (found.kind, found.text, found.user, found.rating) == ("feedback", "slow", "u1", 2.0)
    assert found.time == datetime(2026, 3, 10, tzinfo=UTC)
    assert record({"content": "x"}, map={"text": "nowhere.at.all"}).text == "x"
    assert record("just a line", kind="feedback").kind == "feedback"


def test_a_day_and_a_time_of_day_in_two_columns_are_one_time() -> None:
    row = {"Date": "2026-03-10", "Time": "18:01:47,978", "Level": "INFO", "Content": "up"}
    found = record(row, zone=SHANGHAI)
    assert found.time == datetime(2026, 3, 10, 10, 1, 47, 978000, tzinfo=UTC)
    assert found.text == "up"


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


@settings(max_examples=300, deadline=None)
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
