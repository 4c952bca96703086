"""The three files of a day: chat.jsonl, app.log, feedback.csv; and where each record starts.

Invariant: the truth's positions are the byte offsets at which the records were written.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from datetime import timedelta, timezone
from pathlib import Path

import orjson

from job.records import Kind
from scripts.days.compose import Entry
from scripts.days.truth import TrueRecord

CLOCK = timezone(timedelta(hours=8))
"""Of the servers: the log and the table are written in their local time, the chats name it."""
CSV_HEADER = "created_at,user_id,rating,content\n"


def _chat_line(entry: Entry) -> str:
    messages = [{"role": role, "content": content} for role, content in entry.turns]
    row = {
        "created_at": entry.time.replace(tzinfo=CLOCK).isoformat(timespec="milliseconds"),
        "user_id": entry.user,
        "messages": messages,
    }
    return orjson.dumps(row).decode() + "\n"


def _log_lines(entry: Entry) -> str:
    moment = entry.time.strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
    return f"{moment} {entry.level:<5} [{entry.service}] {entry.text}\n"


def _csv_row(entry: Entry) -> str:
    out = io.StringIO()
    moment = entry.time.strftime("%Y-%m-%d %H:%M:%S")
    csv.writer(out, lineterminator="\n").writerow([moment, entry.user, entry.rating, entry.text])
    return out.getvalue()


_FILES: dict[Kind, tuple[str, str, Callable[[Entry], str]]] = {
    "conversation": ("chat.jsonl", "", _chat_line),
    "operation": ("app.log", "", _log_lines),
    "feedback": ("feedback.csv", CSV_HEADER, _csv_row),
}


def write_day(folder: Path, entries: Sequence[Entry]) -> list[TrueRecord]:
    """Write the files into `folder` (made if it is not there) and return the truth about them."""
    folder.mkdir(parents=True, exist_ok=True)
    truth = []
    for kind, (name, header, layout) in _FILES.items():
        content = bytearray(header.encode())
        for entry in entries:
            if entry.kind != kind:
                continue
            truth.append(
                TrueRecord(name, len(content), kind, entry.lang, entry.outcome, entry.cause)
            )
            content += layout(entry).encode()
        (folder / name).write_bytes(content)
    return truth
