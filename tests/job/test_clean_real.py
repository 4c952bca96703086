"""Cleaning public files that nobody on this project wrote, against what is known of them."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any

import pytest

from job.clean.cleaner import Cleaner, CleanSettings
from job.mask.masking import Masker
from job.records import Raw, Record, SliceCounts
from tests.real_data import real_file


def cleaned(values: Iterable[Any]) -> tuple[list[Record], SliceCounts]:
    settings = CleanSettings(date(2026, 3, 10), UTC, Masker(b"k" * 32))
    cleaner = Cleaner(settings, SliceCounts("file", 0))
    rows = [cleaner.clean(Raw("file", n, value, "json")) for n, value in enumerate(values)]
    return [row for row in rows if isinstance(row, Record)], cleaner.counts


def lines(name: str) -> list[str]:
    return real_file(name).read_bytes().decode("utf-8", "replace").split("\n")


def test_kura_chats() -> None:
    records, counts = cleaned(map(json.loads, filter(None, lines("kura/conversations.jsonl"))))
    assert counts.kinds == {"conversation": 1000}
    assert len({record.digest for record in records}) == 75
    assert all(record.session and record.time and record.lang == "en" for record in records)
    assert records[0].text.startswith("user: Compose an engaging travel blog post")
    assert counts.masked == {}


def test_kdconv_dialogues() -> None:
    records, counts = cleaned(json.loads(real_file("kdconv/travel_test.json").read_text("utf-8")))
    assert counts.kinds == {"conversation": 150}
    assert counts.langs == {"zh": 150}
    assert sum(record.text.count("\n") + 1 for record in records) == 2813
    assert "attrname" not in "".join(record.text for record in records)


def test_abcd_conversations_are_rendered_once() -> None:
    records, _ = cleaned(json.loads(real_file("abcd/abcd_sample.json").read_text("utf-8")))
    assert [record.kind for record in records] == ["conversation"] * 3
    first = records[0]
    assert first.text.startswith("agent: Hi!\nagent: How can I help you?\ncustomer: Hi! I need")
    assert first.text.count("how can i help you?") == 0
    assert "6821 1st ave" not in first.text
    assert "cminh730@email.com" not in first.text
    assert "625-2661" not in first.text
    assert "Order ID: 3348917502" in first.text


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_asap_reviews(part: str) -> None:
    with real_file(f"asap/{part}_sample.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    records, counts = cleaned(rows)
    assert counts.kinds == {"feedback": 100}
    assert [record.rating for record in records] == [float(row["star"]) for row in rows]
    assert "dish_taste" not in "".join(record.text for record in records)
    assert all(record.lang == "zh" for record in records)
    assert counts.masked == {}


def test_cloudtrail_events() -> None:
    events = json.loads(real_file("cloudtrail/cloudtrail.json").read_text("utf-8"))["Records"]
    records, counts = cleaned(events)
    assert counts.kinds == {"operation": 394}
    assert counts.flags == {}
    found = Counter(
        code
        for record in records
        for code in ("UnauthorizedOperation", "ThrottlingException", "AccessDenied")
        if f"errorCode={code}" in record.text or f"errorCode=Client.{code}" in record.text
    )
    assert found == {"UnauthorizedOperation": 24, "ThrottlingException": 15, "AccessDenied": 3}
    assert all(record.service and record.time for record in records)
    assert not any("AKIA" in record.text or "192.168.10.20" in record.text for record in records)


def test_hadoop_lines() -> None:
    records, counts = cleaned(line.rstrip("\r") for line in lines("loghub/Hadoop_2k.log"))
    assert counts.kinds == {"operation": 2000}
    levels = Counter(record.level for record in records)
    assert set(levels) == {"info", "warning", "error", "critical"}
    assert all(
        "org.apache.hadoop" in record.text or "org.mortbay" in record.text for record in records
    )
    assert records[0].time == datetime(2015, 10, 18, 18, 1, 47, 978000, tzinfo=UTC)
    assert counts.masked.keys() == {"ip"}
    assert len({record.digest for record in records}) <= 1.4 * 114


def test_health_app_lines() -> None:
    records, counts = cleaned(line.rstrip("\r") for line in lines("loghub/HealthApp_2k.log"))
    assert counts.kinds == {"operation": 2000}
    assert all(record.time for record in records)
    assert counts.masked == {}
    assert len({record.digest for record in records}) <= 1.4 * 75


def test_ansi_is_taken_out() -> None:
    records, counts = cleaned(filter(None, lines("lnav/logfile_ansi.1")))
    assert counts.flags == {"ansi": 10}
    assert "\x1b" not in "".join(record.text for record in records)
    assert {record.host for record in records} == {"Tims-MacBook-Air"}
