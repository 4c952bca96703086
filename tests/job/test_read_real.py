"""Real files: the counts of their source, and each record as it stands in the file."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from job.records import Raw
from tests.job.reading import plan, rows_of
from tests.real_data import real_file


@pytest.mark.parametrize(
    ("name", "form", "count"),
    [
        ("kura/conversations.jsonl", "json", 1000),
        ("abcd/abcd_sample.json", "json", 3),
        ("kdconv/travel_test.json", "json", 150),
        ("cloudtrail/cloudtrail.json", "json", 394),
        ("loghub/Hadoop_2k.log", "text", 2000),
        ("loghub/HealthApp_2k.log", "text", 2000),
        ("loghub/Hadoop_2k.log_structured.csv", "csv", 2000),
        ("loghub/HealthApp_2k.log_structured.csv", "csv", 2000),
        ("asap/train_sample.csv", "csv", 100),
        ("asap/dev_sample.csv", "csv", 100),
        ("asap/test_sample.csv", "csv", 100),
        ("lnav/logfile_java.0", "text", 20),
        ("lnav/logfile_crlf.0", "text", 2),
        ("lnav/logfile_invalid_utf8.0", "text", 1),
        ("lnav/logfile_ansi.1", "text", 10),
    ],
)
def test_every_record_is_read_however_the_file_is_cut(name: str, form: str, count: int) -> None:
    whole = rows_of(plan(real_file(name)).files[0])
    assert [row.form if isinstance(row, Raw) else row for row in whole] == [form] * count
    cut = plan(real_file(name), slice_bytes=3000).files[0]
    assert rows_of(cut) == whole


def texts(path: Path) -> list[str]:
    return [
        row.value
        for row in rows_of(plan(path).files[0])
        if isinstance(row, Raw) and isinstance(row.value, str)
    ]


@pytest.mark.parametrize("name", ["loghub/Hadoop_2k.log", "loghub/HealthApp_2k.log"])
def test_the_lines_of_a_log_are_its_records(name: str) -> None:
    path = real_file(name)
    assert texts(path) == path.read_bytes().decode().split("\r\n")


def test_audit_events_stand_where_they_say(tmp_path: Path) -> None:
    path = real_file("cloudtrail/cloudtrail.json")
    data = path.read_text()
    expected = json.loads(data)["Records"]
    found = [row for row in rows_of(plan(path).files[0]) if isinstance(row, Raw)]
    assert [row.value for row in found] == expected
    for row in found:
        assert json.JSONDecoder().raw_decode(data, row.position)[0] == row.value


def test_chinese_dialogues_stand_where_they_say() -> None:
    path = real_file("kdconv/travel_test.json")
    data = path.read_bytes()
    found = [row for row in rows_of(plan(path).files[0]) if isinstance(row, Raw)]
    assert [row.value for row in found] == json.loads(data)
    for row in found[::10]:
        assert json.JSONDecoder().raw_decode(data[row.position :].decode())[0] == row.value


def test_reviews_have_the_cells_of_their_columns() -> None:
    path = real_file("asap/train_sample.csv")
    with path.open(encoding="utf-8-sig", newline="") as file:
        expected = list(csv.DictReader(file))
    found = rows_of(plan(path).files[0])
    assert [row.value for row in found if isinstance(row, Raw)] == expected


def test_formats_that_alternate_in_one_file() -> None:
    found = rows_of(plan(real_file("lnav/logfile_mixed_json2.json")).files[0])
    assert [row.form for row in found if isinstance(row, Raw)] == [
        *["json"] * 3, "logfmt", "text", *["json"] * 10,
    ]  # fmt: skip
    assert isinstance(found[3], Raw)
    assert found[3].value == {
        "timestamp": "2013-09-06T22:00:50.123000Z", "level": "INFO", "msg": "Hello, World",
    }  # fmt: skip
    assert isinstance(found[4], Raw)
    assert found[4].value == (
        "panic: foo bar failed baz\n   level1.py:10034\n   level2.py:100\n   level3.py:42"
    )


def test_terminal_colours_are_taken_off_and_flagged() -> None:
    found = rows_of(plan(real_file("lnav/logfile_ansi.1")).files[0])
    assert all(isinstance(row, Raw) and row.flags == ("ansi",) for row in found)
    assert texts(real_file("lnav/logfile_ansi.1"))[0] == (
        "Sep 19 09:24:04 Tims-MacBook-Air AMPDeviceDiscoveryAgent[17600]: tid:1d1f - "
        "Mux ID not found in mapping dictionary"
    )


def test_a_body_of_several_lines_belongs_to_its_record() -> None:
    (row,) = rows_of(plan(real_file("lnav/logfile_invalid_utf8.0")).files[0])
    assert isinstance(row, Raw)
    assert row.flags == ("bad_bytes",)
    assert row.value == (
        "2015-03-12T23:16:52.071:INFO:com.root:Response :\n<tiptop>\n\t<sample>\n"
        "\t\t<node>???????????\ufffd\ufffd\ufffd??</node>\n\t</sample>\n</tiptop>"
    )
