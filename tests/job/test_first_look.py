"""What a plan shows of the files, and what it and a run warn of."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from job.after import closing_warnings, grown
from job.commands.preview_found import Preview
from job.commands.preview_lines import preview_lines
from job.config import resolve
from job.flags import Flags
from job.planning import RunPlan, plan_run


def planned(tmp_path: Path, inputs: str, **flags: object) -> RunPlan:
    config = tmp_path / "fupan.yaml"
    config.write_text(f"inputs:\n{inputs}", encoding="utf-8")
    settings = resolve(
        Flags(config=str(config), answers=str(tmp_path / "a.db"), timezone="UTC", **flags)  # type: ignore[arg-type]
    )
    return plan_run(settings, keep=False)


@pytest.fixture
def day(tmp_path: Path) -> Path:
    folder = tmp_path / "day"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"sev": "error", "log": {"svc": "api"}, "msg": "x"}\n' * 5)
    (folder / "b.log").write_text("2024-03-05 12:00:00 INFO started\n")
    return folder


def test_a_map_that_names_a_field_nobody_has_is_told(tmp_path: Path, day: Path) -> None:
    good = planned(tmp_path, f"- {{path: {day}/a.jsonl, map: {{level: sev, service: log.svc}}}}\n")
    assert good.warnings == ()
    assert [(r.level, r.service) for r in good.looks[0].shown] == [("error", "api")] * 3
    bad = planned(tmp_path, f"- {{path: {day}, map: {{level: lvl, user: log.who}}}}\n")
    assert [warning.partition(": map")[2] for warning in bad.warnings] == [
        f" names the field {name!r} for {part}, which no record looked at has in 2 of 2 files "
        "(day/a.jsonl, day/b.log)"
        for part, name in (("level", "lvl"), ("user", "log.who"))
    ]
    text = planned(tmp_path, f"- {{path: {day}/b.log, map: {{level: lvl}}}}\n")
    assert text.warnings[0].endswith("(plain text has no fields)")


def test_a_map_can_name_a_field_of_a_chat_or_inside_a_message(tmp_path: Path) -> None:
    chats = tmp_path / "chats.jsonl"
    chats.write_text('{"session": "s", "role": "user", "content": "hi", "who": "u1"}\n' * 2)
    logs = tmp_path / "docker.jsonl"
    logs.write_text('{"log": "{\\"sev\\": \\"W\\"}\\n", "stream": "stdout"}\n' * 2)
    inputs = f"- {{path: {chats}, map: {{text: content, user: who}}}}\n"
    inputs += f"- {{path: {logs}, map: {{level: log.sev}}}}\n"
    assert planned(tmp_path, inputs).warnings == ()


def test_files_of_no_use_are_told(tmp_path: Path, day: Path) -> None:
    (day / "c.bin").write_bytes(bytes(range(256)) * 8)
    (day / "d.log").write_bytes(b"")
    (day / "e.gz").write_bytes(b"\x1f\x8b\x08\x00")
    warnings = planned(tmp_path, f"- {{path: {day}}}\n").warnings
    assert warnings == (
        "day/e.gz: the gzip data ends in the middle",
        "1 of 5 files (day/c.bin) hold no text and will be rejected",
        "1 of 5 files (day/d.log) hold nothing",
    )


def test_records_that_a_filter_leaves_out_are_shown(tmp_path: Path, day: Path) -> None:
    plan = planned(tmp_path, f"- {{path: {day}/b.log, skip: [started]}}\n", until="2024-03-01")
    assert [record.text for record in plan.looks[0].shown] == ["started"]


def test_a_window_that_misses_nearly_everything_is_told() -> None:
    window = datetime(2024, 3, 5, tzinfo=UTC), None
    counts = {"read": 100, "skipped_by": {"since": 90, "skip": 5}}
    (said,) = closing_warnings(counts, window, {})
    assert said.startswith("90 of 100 records lie outside the window of --since and --until (2024-")
    assert (
        closing_warnings({"read": 100, "skipped_by": {"since": 89, "skip": 11}}, window, {}) == []
    )
    assert closing_warnings({"read": 0, "skipped_by": {}}, window, {}) == []


def test_a_file_that_grew_is_told(tmp_path: Path, day: Path) -> None:
    plan = planned(tmp_path, f"- {{path: {day}}}\n")
    assert grown(plan.files) == {}
    with (day / "b.log").open("a") as file:
        file.write("2024-03-05 12:00:01 INFO more\n")
    (day / "a.jsonl").unlink()
    assert grown(plan.files) == {"day/b.log": 30}
    (said,) = closing_warnings({"read": 6, "skipped_by": {}}, (None, None), grown(plan.files))
    assert said.startswith("1 files grew by 30 bytes while they were read (day/b.log)")


def test_a_plan_shows_records_and_reasons() -> None:
    first = {"kind": "operation", "level": "error", "time": "2024-03-05T12:00:00+00:00"}
    file = {
        "source": "a.log",
        "format": "text",
        "encoding": "utf-8",
        "compression": None,
        "records": 1,
        "rejected": 2,
        "rejected_by": {"bad_json": 2},
        "skipped": 3,
        "skipped_by": {"since": 3},
        "first": [first | {"text": "disk\nfull"}, {"kind": "feedback", "text": "\x1b[2Jgood"}],
    }
    found = Preview(files=[file] * 11, skipped_by={"since": 3}, warnings=["look out"])
    lines = preview_lines(found, show_request=False)
    assert lines[1:4] == [
        "  a.log: text, utf-8; 1 records, 2 rejected (2 bad_json), 3 skipped (3 since)",
        "      2024-03-05T12:00:00+00:00 operation level=error | disk full",
        "      no time feedback | \ufffd[2Jgood",
    ]
    assert "  (the first records of 10 files are shown)" in lines
    assert "read      0 = 0 records + 0 rejected + 0 skipped (3 since)" in lines
    assert lines[-1] == "warning   look out"


def test_a_map_can_say_what_the_messages_of_a_chat_are_called(tmp_path: Path) -> None:
    chats = tmp_path / "chats.jsonl"
    lines = [
        {"cid": 1, "who": "u1", "speaker": "a", "line": "hi"},
        {"cid": 2, "who": "u2", "speaker": "a", "line": "yo"},
        {"cid": 1, "who": "u1", "speaker": "b", "line": "hello"},
    ]
    chats.write_text("\n".join(map(json.dumps, lines)))
    names = "{text: line, session: cid, user: who}"
    plan = planned(tmp_path, f"- {{path: {chats}, kind: conversation, map: {names}}}\n")
    assert plan.warnings == ()
    assert [(r.session, r.user, r.text) for r in plan.looks[0].shown] == [
        ("1", "u1", "a: hi\nb: hello"),
        ("2", "u2", "a: yo"),
    ]


def test_rows_that_a_user_calls_feedback_are_no_chat(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"session": "s", "role": "user", "content": "too slow"}\n' * 2)
    feedback = planned(tmp_path, f"- {{path: {rows}, kind: feedback}}\n")
    assert [(r.kind, r.text) for r in feedback.looks[0].shown] == [("feedback", "too slow")] * 2
    by_flag = planned(tmp_path, f"- {{path: {rows}}}\n", kind=("*.jsonl=operation",))
    assert len(by_flag.looks[0].shown) == 2
    rows.write_text('{"session": "s", "author": "bob", "content": "too slow"}\n' * 2)
    assert len(planned(tmp_path, f"- {{path: {rows}}}\n").looks[0].shown) == 2
    chat = planned(tmp_path, f"- {{path: {rows}, kind: conversation}}\n")
    assert [r.text for r in chat.looks[0].shown] == ["bob: too slow\nbob: too slow"]
