"""The table of odd input in docs/input.md."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROW = re.compile(r"^\| (?P<input>.+) \| (?P<gets>.+) \| `(?P<file>\w+\.py)::(?P<test>\w+)` \|$")


def test_every_row_names_a_test_that_there_is() -> None:
    table = (ROOT / "docs" / "input.md").read_text(encoding="utf-8")
    table = table.partition("## What odd input gets")[2].partition("|-|-|-|\n")[2]
    lines = [line for line in table.split("\n\n")[0].splitlines() if line]
    rows = [ROW.match(line) for line in lines]
    assert len(rows) > 40
    for line, row in zip(lines, rows, strict=True):
        assert row, line
        tests = (ROOT / "tests" / "job" / row["file"]).read_text(encoding="utf-8")
        assert re.search(rf"^(async )?def {row['test']}\(", tests, re.MULTILINE), line
