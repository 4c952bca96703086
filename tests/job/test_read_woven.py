"""Several streams in one file: containers, processes, threads, chats."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from job.records import Raw, Record
from tests.job.cleaning import cleaner
from tests.job.reading import planned, records, rows_of
from tests.job.test_read_properties import planned as temporary

COMPOSE = """\
web-1  | 2024-03-05 12:00:00 ERROR boom
db-1   | 2024-03-05 12:00:00 LOG: fine
web-1  | Traceback (most recent call last):
db-1   | 2024-03-05 12:00:01 LOG: fine too
web-1  |   File "x.py", line 1
web-1  | ValueError: bad
"""
TRACE = 'Traceback (most recent call last):\n  File "x.py", line 1\nValueError: bad'


def logs(path: Path, text: str) -> list[Any]:
    return [row.value for row in records(path, text.encode())]


def test_containers_of_compose_keep_their_lines(tmp_path: Path) -> None:
    expected = [
        {"container": "web-1", "log": "2024-03-05 12:00:00 ERROR boom\n" + TRACE},
        {"container": "db-1", "log": "2024-03-05 12:00:00 LOG: fine"},
        {"container": "db-1", "log": "2024-03-05 12:00:01 LOG: fine too"},
    ]
    assert logs(tmp_path / "a.log", COMPOSE) == expected
    colours = "".join(f"\x1b[36m{line[:7]}\x1b[0m{line[7:]}\r\n" for line in COMPOSE.splitlines())
    assert logs(tmp_path / "b.log", colours) == expected
    cleaned = [cleaner().clean(row) for row in records(tmp_path / "a.log", COMPOSE.encode())]
    first = next(row for row in cleaned if isinstance(row, Record))
    assert (first.level, first.service) == ("error", "web-1")
    assert first.time is not None
    assert first.text == f"boom\n{TRACE}\ncontainer=web-1"


@pytest.mark.parametrize(
    "prefix",
    [
        "[pod/web-7d4/{}] ",
        "{}-1  | ",
        "2024-03-05T12:00:00Z {}[7]: ",
        "2024-03-05 12:00:00,123 ERROR [{}] ",
        "2024-03-05 12:00:00,123 [{}] ERROR ",
        "[2024-03-05 12:00:00,123: WARNING/{}] ",
        "Mar  5 12:00:00 host {}[7]: ",
        "03-05 12:00:00.123  1234  1250 E {}: ",
    ],
)
def test_a_trace_between_the_lines_of_another_stream_is_one_record(
    tmp_path: Path, prefix: str
) -> None:
    one, other = prefix.format("one"), prefix.format("two")
    trace = TRACE.splitlines()
    text = f"{one}{trace[0]}\n{other}ready\n{one}{trace[1]}\n{other}done\n{one}{trace[2]}\n"
    found = [str(value) for value in logs(tmp_path / "a.log", text)]
    assert len(found) == 3
    assert all(part.strip() in found[0].replace("\\n", "\n") for part in trace)
    assert "ready" in found[1]
    assert "done" in found[2]


def test_lines_of_a_container_runtime(tmp_path: Path) -> None:
    at = "2024-03-05T12:00:00.123456789Z"
    text = f"{at} stderr F {TRACE.splitlines()[0]}\n{at} stdout F hello\n{at} stderr F   File x\n"
    text += f"{at} stderr P long\n{at} stdout F again\n{at} stderr F er\n"
    assert [(row["stream"], row["log"]) for row in logs(tmp_path / "a.log", text)] == [
        ("stderr", "Traceback (most recent call last):\n  File x"),
        ("stdout", "hello"),
        ("stderr", "longer"),
        ("stdout", "again"),
    ]


def test_dockers_own_files(tmp_path: Path) -> None:
    lines = [
        ("stderr", TRACE.splitlines()[0]),
        ("stdout", json.dumps({"level": "error", "msg": "pool empty"})),
        ("stderr", "  File x"),
    ]
    text = "".join(
        json.dumps({"log": said + "\n", "stream": stream, "time": "2024-03-05T12:00:00.5Z"}) + "\n"
        for stream, said in lines
    )
    cleaned = [cleaner().clean(row) for row in records(tmp_path / "a-json.log", text.encode())]
    found = [(row.level, row.text) for row in cleaned if isinstance(row, Record)]
    assert found == [
        (None, "Traceback (most recent call last):\n  File x\nstream=stderr"),
        ("error", "pool empty stream=stdout"),
    ]


def test_what_only_looks_like_a_stream_is_read_as_before(tmp_path: Path) -> None:
    levels = "INFO  | started\nERROR | failed\nINFO  | stopped\n"
    assert logs(tmp_path / "a.log", levels) == levels.splitlines()
    table = "name | age | town\nbob | 7 | Rome\nann | 8 | Oslo\nkim | 9 | Bonn\n"
    assert logs(tmp_path / "b.log", table) == table.splitlines()
    padded = "2024-03-05 12:00:00 INFO  a\n2024-03-05 12:00:01 INFO  b\n2024-03-05 12:00:02 WARN  c"
    assert logs(tmp_path / "d.log", padded) == padded.splitlines()
    listed = [f"Mar  5 12:00:00 h kernel:   {said}" for said in ("one", "  two", "\tat x")]
    assert len(logs(tmp_path / "e.log", "\n".join(listed))) == 2
    plain = "Mar  5 12:00:00 h app[1]: a\nMar  5 12:00:01 h app[2]: b\n\tat Foo.bar(Foo.java:1)\n"
    assert len(logs(tmp_path / "c.log", plain)) == 2


def message(session: object, role: str, said: str, **more: object) -> dict[str, object]:
    return {"session_id": session, "role": role, "content": said, **more}


MESSAGES = [
    message("s1", "user", "hi", user_id="u1", ts="2024-03-05T12:00:00Z"),
    message("s2", "user", "yo", user_id="u2"),
    message("s1", "assistant", "hello", user_id="u1"),
]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv"])
def test_messages_of_one_session_are_one_conversation(tmp_path: Path, name: str) -> None:
    if name == "a.csv":
        rows = [",".join(str(row.get(key, "")) for key in MESSAGES[0]) for row in MESSAGES]
        text = "\n".join([",".join(MESSAGES[0]), *rows, ""])
    else:
        text = json.dumps(MESSAGES) if name == "a.json" else "\n".join(map(json.dumps, MESSAGES))
    cleaned = [cleaner().clean(row) for row in records(tmp_path / name, text.encode())]
    found = [row for row in cleaned if isinstance(row, Record)]
    assert [(row.kind, row.session, row.user, row.text) for row in found] == [
        ("conversation", "s1", "u1", "user: hi\nassistant: hello"),
        ("conversation", "s2", "u2", "user: yo"),
    ]
    assert found[0].time is not None


def test_rows_that_are_no_messages_stay_rows(tmp_path: Path) -> None:
    logged = [{"session": "a", "role": "admin", "level": "info", "msg": "x"}] * 2
    assert logs(tmp_path / "a.jsonl", "\n".join(map(json.dumps, logged))) == logged
    chat = [*MESSAGES * 4, {"session_id": "s1", "event": "closed"}]
    found = logs(tmp_path / "b.jsonl", "\n".join(map(json.dumps, chat)))
    assert found[-1] == chat[-1]


def test_a_session_without_an_end_is_given_in_parts(tmp_path: Path) -> None:
    rows = [message("s", "user", f"{number} " + "x" * 1000) for number in range(600)]
    data = "\n".join(map(json.dumps, rows)).encode()
    whole = records(tmp_path / "a.jsonl", data)
    assert len(whole) == 3
    assert [row.flags for row in whole] == [(), ("part",), ("part",)]
    messages = [
        row for raw in whole if isinstance(raw.value, dict) for row in raw.value["messages"]
    ]
    assert messages == rows
    parts = rows_of(planned(tmp_path / "a.jsonl", data, 1 << 16))
    assert [row.position for row in parts] == [row.position for row in whole]


LINES = [
    "web-1  | 2024-03-05 12:00:00 a",
    "web-1  | Traceback (most recent call last):",
    "web-1  |   File x",
    "web-1  | ValueError: bad",
    "db-1   | plain",
    "db-1   | \tat Foo.bar",
    "db-1   | Caused by: y",
    "db-1   |",
    "no prefix",
    " indented",
    "",
]


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(LINES), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(20, 300),
    st.sampled_from([20, 60, 1 << 20]),
)
@example(["web-1  | a", *["no prefix"] * 5, "web-1  |   b"], "\n", 20, 20)
@example(["web-1  | a", *[" indented"] * 5, "web-1  |   b"], "\n", 20, 20)
def test_any_cut_of_woven_lines_gives_the_same_records(
    lines: list[str], line_end: str, slice_bytes: int, window: int
) -> None:
    data = line_end.join(["web-1  | b", "db-1   | b"] * 60 + lines).encode()
    check_cuts("a.log", data, slice_bytes, window)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["hi", "yes", ""])), max_size=20),
    st.integers(20, 300),
    st.sampled_from([60, 150, 1 << 20]),
)
def test_any_cut_of_chats_gives_the_same_conversations(
    said: list[tuple[str, str]], slice_bytes: int, window: int
) -> None:
    rows = [message("x", "user", "0"), message("y", "user", "0")]
    rows += [message(session, "user", text) for session, text in said]
    check_cuts("a.jsonl", "\n".join(map(json.dumps, rows)).encode(), slice_bytes, window)


def check_cuts(name: str, data: bytes, slice_bytes: int, window: int) -> None:
    with (
        patch("job.read.weave.WINDOW_BYTES", window),
        patch("job.read.slices.WINDOW_BYTES", window),
    ):
        with temporary(name, data, 1 << 30) as file:
            assert file.format.woven
            whole = [(row.position, row.value) for row in rows_of(file) if isinstance(row, Raw)]
        with temporary(name, data, slice_bytes) as file:
            parts = [(row.position, row.value) for row in rows_of(file) if isinstance(row, Raw)]
    assert parts == whole
    assert len({position for position, _ in whole}) == len(whole)


def test_a_line_without_a_stream_that_begins_something_is_a_record(tmp_path: Path) -> None:
    gone = "db-1 exited with code 137"
    found = logs(tmp_path / "a.log", COMPOSE * 2 + gone + "\n")
    assert found[-1] == gone
    line = "2024-03-05 12:00:00 INFO [main] fine\n"
    trace = "2024-03-05 12:00:00 ERROR [main] bad\n2024-03-05 12:00:00 ERROR [main]  at a.b\n"
    alone = "2024-03-05 12:00:01 Server started"
    assert logs(tmp_path / "b.log", trace + line * 20 + alone)[-2:] == [line.rstrip(), alone]


def test_a_day_in_a_column_is_no_container(tmp_path: Path) -> None:
    lines = ["2024-03-05 | 12:00:00 | INFO | fine"] * 4
    assert logs(tmp_path / "a.log", "\n".join(lines)) == lines


def test_a_session_of_any_name_keeps_its_messages(tmp_path: Path) -> None:
    rows = [{"session": "\0s", "role": "user", "content": word} for word in ("one", "two")]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (found,) = logs(tmp_path / "a.jsonl", text)
    assert found["messages"] == rows


@pytest.mark.slow
def test_many_sessions_at_once_cost_linear_time(tmp_path: Path) -> None:
    rows = [{"chat_id": f"{n}", "role": "u", "text": "x"} for n in range(20_000)]
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    began = time.process_time()
    assert len(logs(tmp_path / "a.jsonl", text)) == len(rows)
    assert time.process_time() - began < 3
