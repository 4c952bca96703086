"""Tables whose quotes, cells, headings and line ends are not as they should be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from job.records import Raw, Record, records_to_table
from tests.job.cleaning import cleaner
from tests.job.reading import planned, records, rows_of, values
from tests.job.test_read_bad_input import rejections


def test_a_stray_quote_in_a_table_keeps_every_row(tmp_path: Path) -> None:
    tsv = b'id\ttext\n1\t"half open\n2\tfine\n3\t5" screen\n'
    expected = [
        {"id": "1", "text": '"half open'},
        {"id": "2", "text": "fine"},
        {"id": "3", "text": '5" screen'},
    ]
    assert values(tmp_path / "a.tsv", tsv) == expected
    quoted = b"id,text\n" + b'0,"a, b"\n' * 9 + tsv.replace(b"\t", b",")[8:]
    found = records(tmp_path / "a.csv", quoted)
    assert [record.value for record in found[9:]] == expected
    assert [record.flags for record in found[9:]] == [("bare_quote",), (), ()]


def test_rows_with_too_many_or_too_few_cells(tmp_path: Path) -> None:
    data = b"a,b,extra\n" + b"1,2,3\n" * 9 + b"1,2,3,4,5\n1\n"
    *_, more, fewer = records(tmp_path / "a.csv", data)
    assert more.value == {"a": "1", "b": "2", "extra": "3", "extra_2": ["4", "5"]}
    assert more.flags == ("extra_cells",)
    assert fewer.value == {"a": "1", "b": None, "extra": None}
    assert fewer.flags == ("missing_cells",)


@pytest.mark.parametrize(
    ("above", "delimiter"), [("sep=;\n", ";"), ("Reviews of March\n\nby shop\n", ",")]
)
def test_lines_above_the_heading_of_a_table(tmp_path: Path, above: str, delimiter: str) -> None:
    table = "id,text,stars\n1,good,5\n2,bad,1\n3,so so,3\n".replace(",", delimiter)
    for slice_bytes in (5, 1 << 20):
        found = rows_of(planned(tmp_path / "a.csv", (above + table).encode(), slice_bytes))
        kept = [row.value for row in found if isinstance(row, Raw)]
        assert kept[0] == {"id": "1", "text": "good", "stars": "5"}
        assert len(kept) == 3
        assert [row.excerpt for row in rejections(found)] == above.split("\n")[:1] + (
            ["by shop"] if "shop" in above else []
        )
        assert {row.detail for row in rejections(found)} == {"a line above the heading"}


def test_a_delimiter_more_often_in_one_line_is_a_log_all_the_same(tmp_path: Path) -> None:
    lines = ["20171223-22:15:29:606|Step|3|a", "20171223-22:15:29:615|Step|3|b|c|d|e"]
    assert values(tmp_path / "a.log", "\r\n".join(lines).encode()) == lines


def test_a_table_whose_lines_end_at_carriage_returns_is_not_all_heading(tmp_path: Path) -> None:
    (record,) = records(tmp_path / "a.csv", b"id,text\r1,a\r2,b\r")
    assert isinstance(record.value, dict)
    assert list(record.value.values()) == ["id", "text\r1", "a\r2", "b"]


def test_a_key_first_seen_at_row_1000(tmp_path: Path) -> None:
    lines = [{"a": 1, "b": None}] * 999 + [{"a": 1, "b": "x", "late": {"c": [1]}}]
    for name, text in (
        ("a.jsonl", "\n".join(map(json.dumps, lines))),
        ("a.json", json.dumps(lines)),
    ):
        found = records(tmp_path / name, text.encode())
        assert [record.value for record in found] == lines
        cleaned = [row for raw in found if isinstance(row := cleaner().clean(raw), Record)]
        assert records_to_table(cleaned)["text"][-1].as_py() == "a=1 b=x late.c=1"


def test_crlf_in_a_quoted_cell_at_the_edge_of_a_slice(tmp_path: Path) -> None:
    rows = [f'{number},"one\r\ntwo ""{number}"""' for number in range(200)]
    data = "\r\n".join(["id,text", *rows]).encode()
    expected = [{"id": str(n), "text": f'one\ntwo "{n}"'} for n in range(200)]
    for slice_bytes in (10, 11, 23, 1 << 20):
        file = planned(tmp_path / "a.csv", data, slice_bytes)
        assert (len(file.slices) > 50) == (slice_bytes < 100)
        assert [row.value for row in rows_of(file) if isinstance(row, Raw)] == expected
