"""How files are understood: format, dialect, encoding, where records start."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path

import pytest
import zstandard

from job.read import read_slice
from job.records import Raw
from tests.job.reading import plan, planned, records, rows, rows_of, values


@pytest.mark.parametrize(
    ("name", "data", "form"),
    [
        ("a.jsonl", b'{"a": 1}\n{"a": 2}\n', "jsonl"),
        ("a.jsonl", b'{"a": 1, "messages": [{"role": "user"}]}\n', "jsonl"),
        ("a.log", b'{"a": 1}\n{"a": 2}', "jsonl"),
        ("a.jsonl", b'{"a": 1}\nnot json\n{"a": 2}\n', "jsonl"),
        ("a.json", b'[{"a": 1}, {"a": 2}]', "json"),
        ("a.json", b'[\n{"a": 1},\n{"a": 2}\n]\n', "json"),
        ("a.json", b'{\n  "a": 1\n}\n', "json"),
        ("a.json", b'{"Records": [{"a": 1}]}\n', "json"),
        ("a.csv", b"name,comment\nbob,good\n", "csv"),
        ("a.csv", b"comment\ngood\nbad\n", "csv"),
        ("a.txt", b"id\tname\n1\tbob\n2\teve\n", "csv"),
        ("a.txt", b"id;name;stars\n1;bob;5\n2;eve;4\n", "csv"),
        ("a.txt", b"Hello, world\nHow are you, today\nFine, thanks\n", "text"),
        ("a.log", b"20171223-22:15:29:606|Step|3|a\n20171223-22:15:29:615|Step|3|b\n", "text"),
        ("a.log", b"[2024-03-05 12:00:00] started\n[2024-03-05 12:00:01] ready\n", "text"),
        ("a.log", b"[INFO] started\n[INFO] ready\n", "text"),
        ("a.log", b'level=info msg="ready to go"\nlevel=warn msg=slow ms=12\n', "logfmt"),
        ("a.log", b'{"a": 1}\nlevel=info msg=ready\npanic: x\n', "mixed"),
        ("a.bin", bytes(range(256)) * 10, "binary"),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0\0\0\1\0\x08\6\0\0\0" * 4, "binary"),
        ("a.log", b"", "empty"),
        ("a.log", b"\n\r\n  \n", "empty"),
        ("a.log.gz", gzip.compress(b'{"a": 1}\n{"a": 2}\n', mtime=0), "jsonl"),
        ("a.csv.gz", gzip.compress(b"name,comment\nbob,good\n", mtime=0), "csv"),
    ],
)
def test_formats(tmp_path: Path, name: str, data: bytes, form: str) -> None:
    assert planned(tmp_path / name, data).format.name == form


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ('{"Records": [{"a": 1}, {"a": 2}], "next": null}', [{"a": 1}, {"a": 2}]),
        ('{"meta": {"n": 1}, "data": {"items": [{"a": 1}]}}', [{"a": 1}]),
        ('{"few": {"x": []}, "Records": [{"a": 1}, {"a": 2}]}', [{"a": 1}, {"a": 2}]),
        ('{"a": 1, "tags": ["x", "y"]}', [{"a": 1, "tags": ["x", "y"]}]),
        ('[{"a": 1}]', [{"a": 1}]),
        ('[[1, 2], {"a": 1}]', [[1, 2], {"a": 1}]),
        ('{\n "a": 1\n}\n{\n "a": 2\n}\n', [{"a": 1}, {"a": 2}]),
        ('{"messages": [{"role": "user", "content": "hi"}]}',
         [{"messages": [{"role": "user", "content": "hi"}]}]),
        ('{"conversations": [{"messages": [{"role": "user"}]}]}',
         [{"messages": [{"role": "user"}]}]),
        ("[]", []),
    ],
)  # fmt: skip
def test_where_the_records_of_a_json_document_are(
    tmp_path: Path, data: str, expected: list[object]
) -> None:
    assert values(tmp_path / "a.json", data.encode()) == expected


def test_a_large_document_is_understood_from_its_beginning(tmp_path: Path) -> None:
    events = [{"id": number, "note": "连接超时 " * 20} for number in range(20_000)]
    data = json.dumps({"version": 1, "result": {"events": events}}, ensure_ascii=False).encode()
    file = planned(tmp_path / "a.json", data)
    assert file.size > 4 << 20
    assert file.format.path == ("result", "events")
    assert [row.value for row in rows_of(file) if isinstance(row, Raw)] == events


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.csv", "a,b\n1,x\n", [{"a": "1", "b": "x"}]),
        ("a.csv", "a;b\n1,5;x\n", [{"a": "1,5", "b": "x"}]),
        ("a.tsv", "a\tb\n1\tx, y\n", [{"a": "1", "b": "x, y"}]),
        ("a.csv", 'a,b\n1,"x, ""y""\nz"\n', [{"a": "1", "b": 'x, "y"\nz'}]),
        ("a.csv", "1,x\n2,y\n", [{"c1": "1", "c2": "x"}, {"c1": "2", "c2": "y"}]),
        ("a.csv", "2024-03-05,x\n2024-03-06,y\n",
         [{"c1": "2024-03-05", "c2": "x"}, {"c1": "2024-03-06", "c2": "y"}]),
        ("a.csv", ",a,a\n0,1,2\n", [{"c1": "0", "a": "1", "a_2": "2"}]),
        ("a.csv", "\n\na,b\n\n1,x\n   \n", [{"a": "1", "b": "x"}]),
        ("a.csv", "评论,星级\n很好,5\n", [{"评论": "很好", "星级": "5"}]),
        ("a.csv", "comment\ngood, really\n", [{"comment": "good", "extra": [" really"]}]),
    ],
)  # fmt: skip
def test_tables(tmp_path: Path, name: str, data: str, expected: list[object]) -> None:
    assert values(tmp_path / name, data.encode()) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("2024-03-05 12:00:00 a\nno time\n\n  b\n2024-03-05 12:00:01 c\n",
         ["2024-03-05 12:00:00 a\nno time\n\n  b", "2024-03-05 12:00:01 c"]),
        ("INFO 2024-03-05 12:00:00 a\n<x>\nINFO 2024-03-05 12:00:01 b\n",
         ["INFO 2024-03-05 12:00:00 a\n<x>", "INFO 2024-03-05 12:00:01 b"]),
        ("banner\n2024-03-05 12:00:00 a\n2024-03-05 12:00:01 b\n",
         ["banner", "2024-03-05 12:00:00 a", "2024-03-05 12:00:01 b"]),
        ("one\ntwo\n\nthree", ["one", "two", "three"]),
        ('ERROR a\nTraceback (most recent call last):\n  File "x"\nValueError: b\nINFO c\n',
         ['ERROR a\nTraceback (most recent call last):\n  File "x"\nValueError: b', "INFO c"]),
        ("ERROR a\njava.lang.IllegalStateException: b\n\tat c.D(E.java:1)\n"
         "Caused by: java.io.IOException: f\n\t... 3 more\nINFO g\n",
         ["ERROR a", "java.lang.IllegalStateException: b\n\tat c.D(E.java:1)\n"
          "Caused by: java.io.IOException: f\n\t... 3 more", "INFO g"]),
        ("request {\n  id: 1\n}\nresponse {\n  id: 2\n}\n",
         ["request {\n  id: 1\n}", "response {\n  id: 2\n}"]),
        ('127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1\n'
         '127.0.0.1 - - [10/Oct/2000:13:55:37 -0700] "GET / HTTP/1.0" 500 2\n',
         ['127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1',
          '127.0.0.1 - - [10/Oct/2000:13:55:37 -0700] "GET / HTTP/1.0" 500 2']),
    ],
)  # fmt: skip
def test_where_the_records_of_a_text_log_start(
    tmp_path: Path, data: str, expected: list[str]
) -> None:
    assert values(tmp_path / "a.log", data.encode()) == expected
    assert values(tmp_path / "b.log", data.replace("\n", "\r\n").encode()) == expected


CHINESE = "2024-03-05 14:30:00 用户登录失败，原因：连接超时\n2024-03-05 14:30:01 已恢复\n"


@pytest.mark.parametrize(
    ("data", "codec", "bom"),
    [
        (CHINESE.encode(), "utf-8", 0),
        (CHINESE.encode("utf-8-sig"), "utf-8", 3),
        (CHINESE.encode("gb18030"), "gb18030", 0),
        (CHINESE.encode("utf-16"), "utf-16-le", 2),
        (CHINESE.encode("utf-16-be"), "utf-16-be", 0),
        (CHINESE.encode("utf-32"), "utf-32-le", 4),
    ],
)
def test_encodings_give_the_same_records_and_their_offsets(
    tmp_path: Path, data: bytes, codec: str, bom: int
) -> None:
    file = planned(tmp_path / "a.log", data)
    assert (file.encoding.codec, file.encoding.bom) == (codec, bom)
    first, second = (row for row in rows_of(file) if isinstance(row, Raw))
    assert [first.value, second.value] == CHINESE.splitlines()
    assert first.position == bom
    assert data[second.position :].decode(codec) == CHINESE.splitlines()[1] + "\n"


@pytest.mark.parametrize(
    ("text", "codec", "read_as"),
    [
        ("接続がタイムアウトしました\nもう一度\n", "euc_jp", "euc_jp"),
        ("연결 시간이 초과되었습니다\n다시 시도해 주세요\n", "euc_kr", "cp949"),
        ("接続がタイムアウトしました\nもう一度お試しください\n", "cp932", "cp932"),
        ("連線逾時，請稍後再試\n伺服器沒有回應\n", "big5", "big5"),
        ("支付失败\n", "gb18030", "gb18030"),
    ],
)
def test_encodings_of_east_asia_are_told_apart(
    tmp_path: Path, text: str, codec: str, read_as: str
) -> None:
    file = planned(tmp_path / "a.log", text.encode(codec))
    assert file.encoding.codec == read_as
    assert [row.value for row in rows_of(file) if isinstance(row, Raw)] == text.splitlines()


def test_latin_letters_in_a_western_encoding(tmp_path: Path) -> None:
    text = "Le café était fermé, déjà vu à Besançon\nnuméro préféré\n"
    assert values(tmp_path / "a.log", text.encode("cp1252")) == text.splitlines()


def test_chinese_far_into_a_large_ascii_file_still_decides_its_encoding(tmp_path: Path) -> None:
    lines = ["2024-03-05 14:30:00 INFO heartbeat ok\n"] * 60_000
    lines[40_000:45_000] = ["2024-03-05 14:30:00 ERROR 数据库连接超时，请检查网络\n"] * 5_000
    file = planned(tmp_path / "a.log", "".join(lines).encode("gb18030"))
    assert file.encoding.codec == "gb18030"


@pytest.mark.slow
def test_lines_of_another_format_far_into_a_file_make_it_mixed(tmp_path: Path) -> None:
    data = b'{"msg": "heartbeat ok"}\n' * 60_000 + b"level=info msg=heartbeat\n" * 60_000
    file = planned(tmp_path / "a.log", data)
    assert file.format.name == "mixed"
    forms = [row.form for row in rows_of(file) if isinstance(row, Raw)]
    assert forms == ["json"] * 60_000 + ["logfmt"] * 60_000


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_compressed_files_are_read_by_their_content(tmp_path: Path, compress: type[bytes]) -> None:
    data = CHINESE.encode()
    assert records(tmp_path / "a.log", compress(data)) == records(tmp_path / "a.log", data)
    in_parts = compress(data) + compress(data)
    assert records(tmp_path / "a.log", in_parts) == records(tmp_path / "a.log", data * 2)


def test_a_large_file_is_cut_and_its_slices_travel(tmp_path: Path) -> None:
    data = b"".join(b"2024-03-05 14:30:00 INFO request %d\n" % number for number in range(3000))
    file = planned(tmp_path / "a.log", data, slice_bytes=10_000)
    assert len(file.slices) == 11
    assert sum(part.size for part in file.slices) == file.size
    sent = pickle.loads(pickle.dumps(file.slices))  # noqa: S301
    found = [row.position for part in sent for row in read_slice(part)]
    assert found == [row.position for row in rows(tmp_path / "b.log", data)]


def test_a_table_is_cut_only_where_rows_start(tmp_path: Path) -> None:
    data = b"id,comment\n" + b'1,"two\nlines, ""quoted"""\n' * 1000
    file = planned(tmp_path / "a.csv", data, slice_bytes=2_000)
    assert len(file.slices) > 5
    assert rows_of(file) == rows(tmp_path / "a.csv", data)
    stray = planned(tmp_path / "b.csv", data + b'2,5" screen\n', slice_bytes=2_000)
    assert len(stray.slices) == 1


def test_a_file_plan_shows_its_first_records(tmp_path: Path) -> None:
    file = planned(tmp_path / "a.jsonl", b'{"a": 1}\n' * 100)
    assert len(file.sample) == 50
    assert planned(tmp_path / "b.jsonl", b"").sample == ()
    assert plan(tmp_path).size == 900
