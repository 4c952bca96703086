"""Any cut into slices, and any bytes at all."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from job.read import FilePlan
from job.read.dialect import row_cuts
from job.read.encoding import UTF8, Encoding
from job.read.json_stream import read_json
from job.read.lines import read_blocks
from job.records import Raw
from tests.job.reading import plan, rows_of

NAMES = st.sampled_from(["a", "a.log", "a.jsonl", "a.json", "a.csv", "a.tsv"])
LINE_ENDS = st.sampled_from(["\n", "\r\n", "\n\n", "\n \n"])
LOG_LINES = [
    "2024-03-05 12:00:00 started",
    "2024-03-05 12:00:01 ERROR 连接超时",
    "INFO 2024-03-05 12:00:02 level first",
    "\x1b[32mSep 19 \x1b[0m09:24:04 colours",
    "no time at all",
    "  indented",
    "\tat com.foo.Bar(Bar.java:42)",
    "Traceback (most recent call last):",
    "ValueError: bad",
    "java.io.IOException",
    "}",
    "...",
    "nul\0and\rreturn",
    "\u2028",
    "\x0b",
]
JSON_LINES = [
    '{"a": 1}',
    '{"b": "连接\\n超时"}',
    '{"a": ',
    "[1, 2]",
    "17",
    '{"a": NaN}',
    "{}",
    "{x}",
]
LOGFMT_LINES = ["level=info msg=ready", 'a=1 b="x y" a=2', "a=1", 'level=info msg="open']
ROWS = ["id,text", "1,a", '2,"b\nc"', '3,"d ""e"""', '4,"half', "5,f,g", "6", ',""', '7,h" i', ""]


def texts(*lines: list[str]) -> st.SearchStrategy[str]:
    choices = st.sampled_from([line for group in lines for line in group])
    pairs = st.lists(st.tuples(choices, LINE_ENDS), max_size=25)
    return pairs.map(lambda found: "".join(line + end for line, end in found))


CONTENTS = st.one_of(
    texts(LOG_LINES),
    texts(JSON_LINES),
    texts(LOGFMT_LINES),
    texts(ROWS),
    texts(LOG_LINES, JSON_LINES, LOGFMT_LINES),
    texts(JSON_LINES, LOGFMT_LINES, ROWS),
).flatmap(lambda text: st.sampled_from([text, text.rstrip("\r\n"), "\ufeff" + text]))


@contextmanager
def planned(name: str, data: bytes, slice_bytes: int) -> Iterator[FilePlan]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        (file,) = plan(path, slice_bytes=slice_bytes).files
        yield file


@given(NAMES, CONTENTS, st.sampled_from(["utf-8", "gb18030"]), st.integers(1, 200))
def test_any_cut_into_slices_gives_the_same_records(
    name: str, text: str, codec: str, slice_bytes: int
) -> None:
    data = text.encode(codec)
    with planned(name, data, 1 << 30) as file:
        whole = rows_of(file)
    with planned(name, data, slice_bytes) as file:
        assert sum(part.size for part in file.slices) in (len(data), 0)
        # A table is read anew from where each file lies, so only the names differ.
        parts = rows_of(file)
    assert [repr(row).replace(row.source, "") for row in parts] == [
        repr(row).replace(row.source, "") for row in whole
    ]
    positions = [row.position for row in whole if isinstance(row, Raw)]
    assert len(set(positions)) == len(positions)


@given(texts(LOG_LINES, LOGFMT_LINES), st.integers(1, 100))
def test_no_character_of_a_text_log_is_lost_or_doubled(text: str, slice_bytes: int) -> None:
    text = text.replace("\x1b[32m", "").replace("\x1b[0m", "")
    with planned("a.log", text.encode(), slice_bytes) as file:
        if file.format.name != "text":
            return
        found = [row.value for row in rows_of(file) if isinstance(row, Raw)]
    assert "".join("".join(map(str, found)).split()) == "".join(text.split())


@given(NAMES, st.binary(max_size=300), st.integers(1, 400))
@example("a.json", b"[[[[", 1)
@example("a.json", b'{"a": [{"b": ', 1)
@example("a.csv", b'"', 1)
@example("a.log", b"\xff\xfe\0", 1)
def test_any_bytes_are_planned_and_read(name: str, data: bytes, slice_bytes: int) -> None:
    for content in (
        data,
        gzip.compress(data, mtime=0),
        gzip.compress(data)[: slice_bytes // 4 + 3],
    ):
        with planned(name, content, slice_bytes) as file:
            found = rows_of(file)
            assert found == rows_of(file) or any(row != row for row in found)
            for row in found:
                repr(row).encode()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=20,
    ),
    st.sampled_from([UTF8, Encoding("gb18030"), Encoding("utf-16-le")]),
    st.integers(1, 50),
    st.sampled_from([None, 2]),
    st.booleans(),
)
def test_a_json_array_is_read_as_a_parser_reads_it(
    value: object, encoding: Encoding, size: int, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps([{"v": value}, [value]], indent=indent, ensure_ascii=ascii_only)
    data = text.encode(encoding.codec, "replace")
    expected = json.loads(data.decode(encoding.codec))
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    found = list(read_json(chunks, 0, "a", encoding, ()))
    assert [row.value for row in found if isinstance(row, Raw)] == _repaired(expected)
    for row in found:
        rest = data[row.position :].decode(encoding.codec)
        assert json.JSONDecoder().raw_decode(rest)[1] > 0


def _repaired(value: object) -> object:
    """Lone surrogates, which escapes can spell, come out as U+FFFD."""
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return json.loads(text.decode("utf-8", "surrogatepass").encode("utf-8", "replace").decode())


@given(st.binary(max_size=200), st.integers(1, 20), st.integers(0, 250))
def test_lines_do_not_depend_on_chunks(data: bytes, size: int, end: int) -> None:
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    blocks = list(read_blocks(chunks, 0, UTF8, end, mid_line=False))
    assert b"".join(block.data for block in blocks) == data
    for block in blocks:
        assert data[block.position : block.stop] == block.data
        starts = [block.position + i + 1 for i, byte in enumerate(block.data[:-1]) if byte == 10]
        assert len({start >= end for start in (block.position, *starts)}) == 1


@given(st.lists(st.lists(st.text('ab",\n', max_size=4), min_size=2, max_size=3)), st.integers(1, 9))
def test_cuts_of_a_table_are_where_rows_start(table: list[list[str]], slice_bytes: int) -> None:
    rows = [",".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row) for row in table]
    data = "".join(row + "\n" for row in rows).encode()
    starts = {
        len("".join(row + "\n" for row in rows[:count]).encode()) for count in range(len(rows) + 1)
    }
    for size in (1, 3, len(data) + 1):
        chunks = [data[start : start + size] for start in range(0, len(data), size)]
        cuts = row_cuts(chunks, 0, ",", slice_bytes)
        assert set(cuts) <= starts
        assert bool(cuts) == bool([start for start in starts if start >= slice_bytes])
