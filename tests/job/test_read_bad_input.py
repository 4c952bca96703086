"""Bad input: the smallest example of each kind, and what it gets."""

from __future__ import annotations

import gzip
import json
from datetime import date
from pathlib import Path

import pytest
import zstandard

from job.records import Raw, Record, Rejected
from tests.job.cleaning import cleaner
from tests.job.reading import planned, records, rows, rows_of, values


def rejections(found: list[Raw | Rejected]) -> list[Rejected]:
    return [row for row in found if isinstance(row, Rejected)]


def only(found: list[Raw]) -> Raw:
    (record,) = found
    return record


def test_fields_that_change_their_type_from_line_to_line(tmp_path: Path) -> None:
    lines = [
        {"content": "text", "user": None},
        {"content": ["a", "list"], "user": "u1"},
        {"content": {"type": "object"}, "late": 1},
    ]
    data = "\n".join(map(json.dumps, lines)).encode()
    assert values(tmp_path / "a.jsonl", data) == lines


def test_broken_lines_are_rejected_where_they_stand_and_the_others_kept(tmp_path: Path) -> None:
    data = b'{"a": 1}\n{"a": \n\n"only text"\n17\n{"a": 2}\n'
    found = rows(tmp_path / "a.jsonl", data)
    assert [row.value for row in found if isinstance(row, Raw)] == [{"a": 1}, {"a": 2}]
    assert [(row.position, row.reason, row.excerpt) for row in rejections(found)] == [
        (9, "bad_json", '{"a":'),
        (17, "not_a_record", "only text"),
        (29, "not_a_record", "17"),
    ]


def test_an_excerpt_is_short(tmp_path: Path) -> None:
    (row,) = rejections(rows(tmp_path / "a.jsonl", b'{"a": 1}\n{"' + b"x" * 5000 + b"\n"))
    assert len(row.excerpt) < 2000
    cleaned = cleaner().clean(row)
    assert isinstance(cleaned, Rejected)
    assert len(cleaned.excerpt) == 200


@pytest.mark.parametrize(
    ("line", "value", "flags"),
    [
        ('{"id": 12345678901234567890123}', {"id": 12345678901234567890123}, ()),
        ('{"id": -9223372036854775809}', {"id": -9223372036854775809}, ()),
        ('{"id": 18446744073709551615}', {"id": 18446744073709551615}, ()),
        ('{"a": Infinity, "b": [-Infinity]}', {"a": float("inf"), "b": [-float("inf")]}, ("nan",)),
        ('{"a": 1e999}', {"a": float("inf")}, ("nan",)),
        ('{"a": "x\\ud800y"}', {"a": "x\ufffdy"}, ("lone_surrogate",)),
        ('{"\\udfff": ["\\ud83d\\ude00"]}', {"\ufffd": ["\U0001f600"]}, ("lone_surrogate",)),
        ('{"a": "x\ty"}', {"a": "x\ty"}, ()),
        ('{"a": "x\0y"}', {"a": "x\0y"}, ("nul",)),
        ('{"a": "x\\u0000y"}', {"a": "x\0y"}, ("nul",)),
        ('{"a": "x\u2028y\x85z"}', {"a": "x\u2028y\x85z"}, ()),
        ('{"a": "{\\"b\\": 1}"}', {"a": '{"b": 1}'}, ()),
        ('\ufeff{"a": 1}', {"a": 1}, ()),
        ('{"a":1,"a":2,"b":3}', {"a_1": 1, "a": 2, "b": 3}, ("duplicate_key",)),
        ('{"a": 1, "a": 1}', {"a": 1}, ("duplicate_key",)),
        ('{"a" : 1, "a" : 2}', {"a_1": 1, "a": 2}, ("duplicate_key",)),
        ('{"a": [{"b": 1, "b": 2}]}', {"a": [{"b_1": 1, "b": 2}]}, ("duplicate_key",)),
        ('{"a":1,"a_1":2,"a":3,"a":4}', {"a_2": 1, "a_1": 2, "a_3": 3, "a": 4}, ("duplicate_key",)),
    ],
)
def test_json_that_strict_parsers_refuse_or_round(
    tmp_path: Path, line: str, value: object, flags: tuple[str, ...]
) -> None:
    for number, data in enumerate((f'{{"z": 0}}\n{line}\n', f'[{{"z": 0}}, {line}]')):
        record = records(tmp_path / f"{number}.json", data.encode())[1]
        assert (record.value, record.flags) == (value, flags)


def test_not_a_number_is_kept_and_flagged(tmp_path: Path) -> None:
    record = only(records(tmp_path / "a.jsonl", b'{"a": NaN}\n'))
    assert isinstance(record.value, dict)
    assert record.value["a"] != record.value["a"]
    assert record.flags == ("nan",)


def test_one_invalid_byte_costs_one_character(tmp_path: Path) -> None:
    data = '{"a": "连接超时"}\n'.encode() * 3 + b'{"a": "x\xffy"}\n'
    found = records(tmp_path / "a.jsonl", data)
    assert (found[-1].value, found[-1].flags) == ({"a": "x\ufffdy"}, ("bad_bytes",))
    assert found[0].flags == ()
    log = only(records(tmp_path / "a.log", b"disk \xff full\n"))
    assert (log.value, log.flags) == ("disk \ufffd full", ("bad_bytes",))
    table = records(tmp_path / "a.csv", b"a,b\n1,x\xffy\n")[0]
    assert (table.value, table.flags) == ({"a": "1", "b": "x\ufffdy"}, ("bad_bytes",))


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_only_line_feeds_end_lines(tmp_path: Path, separator: str) -> None:
    text = f"2024-03-05 12:00:00 a{separator}b"
    assert values(tmp_path / "a.log", text.encode()) == [text]
    cell = {"a": f"x{separator}y", "b": "1"}
    assert values(tmp_path / "a.csv", f"a,b\n{cell['a']},1\n".encode()) == [cell]


def test_a_document_that_ends_early_keeps_its_whole_elements(tmp_path: Path) -> None:
    for data in (b'[{"a": 1}, {"a": 2}, {"a"', b'{"Records": [{"a": 1}, {"a": 2}, {"a": "'):
        found = rows(tmp_path / "a.json", data)
        assert [row.value for row in found if isinstance(row, Raw)] == [{"a": 1}, {"a": 2}]
        assert [row.reason for row in rejections(found)] == ["truncated"]


def test_a_broken_element_does_not_take_its_neighbours_along(tmp_path: Path) -> None:
    found = rows(tmp_path / "a.json", b'[{"a": 1}, {"a": [tru, {"b": "]"}]}, 5, {"a": 2}]')
    assert [row.value for row in found if isinstance(row, Raw)] == [{"a": 1}, {"a": 2}]
    assert [(row.position, row.reason) for row in rejections(found)] == [
        (11, "bad_json"),
        (37, "not_a_record"),
    ]


def test_what_stands_beside_the_array_of_records_is_accounted_for(tmp_path: Path) -> None:
    data = b'{"errors": [{"e": 1}], "items": [{"a": 1}, {"a": 2}], "next": null}{"other": 1}'
    found = rows(tmp_path / "a.json", data)
    assert [row.value for row in found if isinstance(row, Raw)] == [{"a": 1}, {"a": 2}]
    assert ["errors" in row.detail or "items" in row.detail for row in rejections(found)] == [
        True,
        True,
    ]


def test_json_nested_beyond_reason_is_rejected(tmp_path: Path) -> None:
    deep = b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for name, data in (("a.jsonl", deep), ("a.json", b"[" + deep + b', {"b": 1}]')):
        assert [row.reason for row in rejections(rows(tmp_path / name, data))] == ["bad_json"]


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_compressed_data_that_breaks_off(tmp_path: Path, compress: type[bytes]) -> None:
    lines = [f'{{"number": {number * 7919 % 100_003}}}' for number in range(50_000)]
    data = compress("\n".join(lines).encode())
    found = rows(tmp_path / "a.jsonl.gz", data[: len(data) // 2])
    kept = [row for row in found if isinstance(row, Raw)]
    assert len(kept) > 10_000
    assert [json.dumps(row.value) for row in kept] == lines[: len(kept)]
    assert rejections(found)[-1].reason == "truncated"
    assert rejections(found)[-1].position >= kept[-1].position


def test_compressed_data_that_is_damaged_at_its_end(tmp_path: Path) -> None:
    data = gzip.compress(b'{"a": 1}\n{"a": 2}\n', mtime=0)
    found = rows(tmp_path / "a.gz", data[:-8] + b"\0\1\2\3\4\5\6\7")
    assert [row.value for row in found if isinstance(row, Raw)] == [{"a": 1}, {"a": 2}]
    assert [row.reason for row in rejections(found)] == ["truncated"]


def test_compressed_files_that_hold_nothing(tmp_path: Path) -> None:
    assert rows(tmp_path / "a.gz", b"") == []
    assert rows(tmp_path / "b.gz", gzip.compress(b"", mtime=0)) == []
    (cut,) = rows(tmp_path / "c.gz", gzip.compress(b"hello", mtime=0)[:6])
    assert isinstance(cut, Rejected)
    assert cut.reason == "truncated"


def test_padding_and_a_second_member_behind_compressed_data(tmp_path: Path) -> None:
    data = gzip.compress(b"one\n", mtime=0) + b"\0" * 100_000 + gzip.compress(b"two\n") + b"\0" * 7
    assert values(tmp_path / "a.gz", data) == ["one", "two"]


def test_a_nul_in_a_field(tmp_path: Path) -> None:
    record = only(records(tmp_path / "a.csv", b"name,comment\nbob,go\0od\n"))
    assert (record.value, record.flags) == ({"name": "bob", "comment": "go\0od"}, ("nul",))
    line = only(records(tmp_path / "a.log", b"2024-03-05 12:00:00 disk\0full again\n"))
    assert line.flags == ("nul",)


def test_files_that_hold_no_text(tmp_path: Path) -> None:
    for number, data in enumerate((bytes(range(256)) * 8, gzip.compress(bytes(range(256)) * 8))):
        (row,) = rows(tmp_path / f"{number}.log", data)
        assert isinstance(row, Rejected)
        assert row.reason == "binary"


def test_a_json_line_cut_short_inside_a_mixed_file_is_kept_as_text(tmp_path: Path) -> None:
    found = records(tmp_path / "a.log", b'{"a": 1}\nlevel=info a=b\n{"a": "x}\nlevel=info a=c\n')
    assert [(row.form, row.flags) for row in found] == [
        ("json", ()),
        ("logfmt", ()),
        ("text", ("bad_json",)),
        ("logfmt", ()),
    ]


def test_a_logfmt_key_that_comes_twice_is_flagged(tmp_path: Path) -> None:
    record = only(records(tmp_path / "a.log", b'a=1 b="x \\"y\\"" a=2 url=/p?q=1\n'))
    assert record.value == {"a": "2", "a_1": "1", "b": 'x "y"', "url": "/p?q=1"}
    assert record.flags == ("duplicate_key",)


@pytest.mark.slow
def test_a_very_long_line_is_read_and_a_longer_one_rejected(tmp_path: Path) -> None:
    long = b'{"a": "' + b"x" * (50 << 20) + b'"}\n'
    longer = b'{"a": "' + b"x" * (65 << 20) + b'"}\n'
    file = planned(tmp_path / "a.jsonl", b'{"b": 1}\n' + long + longer + b'{"b": 2}\n')
    assert len(file.slices) > 5
    found = rows_of(file)
    kept = [row for row in found if isinstance(row, Raw)]
    assert [len(str(row.value)) > 1000 for row in kept] == [False, True, False]
    (row,) = rejections(found)
    assert (row.reason, row.position) == ("too_long", 9 + len(long))


def test_a_stack_trace_across_the_edge_of_a_slice(tmp_path: Path) -> None:
    trace = "2024-03-05 12:00:00 ERROR boom\nTraceback (most recent call last):\n  File x\nE: bad"
    data = "\n".join([trace, "2024-03-05 12:00:01 INFO fine", trace]).encode()
    for slice_bytes in range(1, len(data), 7):
        file = planned(tmp_path / "a.log", data, slice_bytes)
        found = [row.value for row in rows_of(file) if isinstance(row, Raw)]
        assert found == [trace, "2024-03-05 12:00:01 INFO fine", trace]


def test_json_then_logfmt_then_a_trace_in_one_file(tmp_path: Path) -> None:
    trace = "Traceback (most recent call last):\n  File x\nKeyError: 'a'"
    data = f'{{"level": "info", "msg": "a"}}\nlevel=warn msg=b\n{trace}\nlevel=info msg=c\n'
    found = records(tmp_path / "a.log", data.encode())
    assert [(row.form, row.value) for row in found] == [
        ("json", {"level": "info", "msg": "a"}),
        ("logfmt", {"level": "warn", "msg": "b"}),
        ("text", trace),
        ("logfmt", {"level": "info", "msg": "c"}),
    ]


def test_many_notations_and_zones_of_time_in_one_file(tmp_path: Path) -> None:
    lines = {
        "2024-03-05 12:00:00,5 a": "2024-03-05T12:00:00.500000+00:00",
        "1709640000 b": "2024-03-05T12:00:00+00:00",
        "1709640000123 c": "2024-03-05T12:00:00.123000+00:00",
        "2024-3-5 1:2:3 d": "2024-03-05T01:02:03+00:00",
        "2024-03-05T12:00:00+08:00 e": "2024-03-05T04:00:00+00:00",
        "2024-03-05 12:00:00 PST f": "2024-03-05T20:00:00+00:00",
        "Mar  5 12:00:00 h app: g": "2024-03-05T12:00:00+00:00",
    }
    found = records(tmp_path / "a.log", "\n".join(lines).encode())
    cleaning = cleaner(reference=date(2024, 3, 6))
    times = [cleaned.time for raw in found if isinstance(cleaned := cleaning.clean(raw), Record)]
    assert [time and time.isoformat() for time in times] == list(lines.values())


def test_syslog_without_a_year_across_new_year(tmp_path: Path) -> None:
    data = b"Dec 31 23:59:59 h app: old\nJan  1 00:00:01 h app: new\n"
    cleaning = cleaner(reference=date(2024, 1, 1))
    rows = [cleaning.clean(raw) for raw in records(tmp_path / "a.log", data)]
    years = [row.time.year for row in rows if isinstance(row, Record) and row.time]
    assert years == [2023, 2024]


def test_files_that_are_empty_are_no_trouble(tmp_path: Path) -> None:
    for number, data in enumerate((b"", b"\n \n", b"\xef\xbb\xbf", b"\xff\xfe")):
        for name in ("a.log", "a.json", "a.jsonl", "a.csv"):
            assert rows(tmp_path / f"{number}{name}", data) == []
