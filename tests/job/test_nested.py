"""Records inside the message of another."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.job.cleaning import record

APP = {"level": "error", "msg": "pool empty", "ts": "2026-03-10T08:00:00Z", "user_id": "u7"}


@pytest.mark.parametrize(
    "line",
    [
        {"log": json.dumps(APP) + "\n", "stream": "stdout", "time": "2026-03-10T08:00:00.5Z"},
        {"log": json.dumps({"log": json.dumps(APP)}), "stream": "stdout"},
        {"message": 'level=error msg="pool empty" user_id=u7 ts=2026-03-10T08:00:00Z'},
        f"2026-03-10T08:00:00Z app[web.1]: {json.dumps(APP)}",
        f"Mar 10 08:00:00 h app[1]: {json.dumps(APP)}",
    ],
)
def test_json_or_logfmt_in_a_message_is_the_record(line: Any) -> None:
    found = record(line)
    assert (found.kind, found.level, found.user) == ("operation", "error", "u7")
    assert found.time is not None
    assert found.time.hour == 8
    assert "pool empty" in found.text
    assert "{" not in found.text
    assert "2026" not in found.text
    assert found.flags == ("nested",)


def test_what_no_level_or_message_makes_a_record_stays_the_text() -> None:
    assert record({"msg": "took a=1 b=2"}).text == "took a=1 b=2"
    assert record('2026-03-10 08:00:00 failed with {"code": 5}').text == 'failed with {"code": 5}'
    assert record({"msg": '{"broken": '}).text == '{"broken":'


def test_turns_spelled_in_a_cell_are_a_conversation() -> None:
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]
    found = record({"id": "1", "messages": json.dumps(turns)})
    assert (found.kind, found.text) == ("conversation", "user: hi\nassistant: yes?")


def test_a_field_inside_is_mapped_by_its_dotted_name() -> None:
    line = {"log": json.dumps({"a": {"b": "what happened"}, "sev": "W", "level": "x"})}
    found = record(line, map={"text": "log.a.b", "service": "log.sev"})
    assert (found.text, found.service) == ("what happened log.sev=W log.level=x", "W")


def test_the_host_inside_is_the_records_and_the_other_stays_in_the_text() -> None:
    line = 'Mar  5 12:00:00 relay app[1]: {"msg": "full", "host": "db-3", "level": "error"}'
    found = record(line)
    assert (found.host, found.text) == ("db-3", "relay app[1]: full")


def test_the_level_in_the_message_is_the_records_and_the_other_stays_in_the_text() -> None:
    time = "2026-03-10T08:00:00Z"
    found = record({"time": time, "level": "info", "message": "2026-03-10 08:00:00 ERROR full"})
    assert (found.level, found.text) == ("error", "full level=info")
