from __future__ import annotations

from pathlib import Path

import pytest

from job import lines
from job.lines import LineFinder


@pytest.mark.parametrize("block", [1, 7, 2**20])
def test_a_position_is_on_the_line_that_an_editor_shows(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", block)
    path = tmp_path / "a.log"
    data = b"first\nsecond\r\n\nfourth"
    path.write_bytes(data)
    find = LineFinder([{"source": "a.log", "path": str(path), "size": len(data)}])
    assert [find("a.log", data.index(word)) for word in (b"fourth", b"first", b"second")] == [
        4,
        1,
        2,
    ]


def test_a_file_that_changed_or_went_has_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntwo\n")
    find = LineFinder([{"source": "a", "path": str(path), "size": 3}])
    assert find("a", 4) is None
    assert find("b", 4) is None
    find = LineFinder([{"source": "a", "path": str(path), "size": 8, "compression": "gzip"}])
    assert find("a", 4) is None
