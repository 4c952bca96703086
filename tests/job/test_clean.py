"""Raw records of every shape -> their kind, text and fields."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tests.job.cleaning import record

SHANGHAI = timezone(timedelta(hours=8))


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


def test_speakers_in_a_log_do_not_make_it_a_conversation() -> None:
    dump = "2026-03-10 01:02:03 ERROR bad prompt\nSystem: be kind\nUser: hi"
    assert record(dump).kind == "operation"
    found = record({"service": "gateway", "msg": "prompt\nSystem: be kind\nUser: hi", "size": 3})
    assert (found.kind, found.text.split("\n")[-1]) == ("operation", "service=gateway size=3")


@pytest.mark.parametrize(
    ("data", "changes"),
    [
        ({"review": ["late", "cold"], "rating": 1}, {}),
        ({"opinions": ["late", "cold"]}, {"kind": "feedback", "map": {"text": "opinions"}}),
    ],
)
def test_feedback_that_is_a_list_is_read(data: dict[str, Any], changes: dict[str, Any]) -> None:
    found = record(data, **changes)
    assert (found.kind, found.text) == ("feedback", "late, cold")


def test_feedback_that_is_an_object_is_read() -> None:
    data = {"review": {"good": "price", "bad": "late", "password": "hunter22"}, "rating": 3}
    text = record(data).text
    assert text.startswith("good=price bad=late password=<secret-")


def test_a_long_name_is_not_said_with_each_value_below_it() -> None:
    name = "why " * 100
    text = record({"m": {name: {str(n): {"v": n} for n in range(300)}}}).text
    assert text.count(name) == 1
    assert len(text) < 20_000
    assert "299.v=299" in text
