"""docs/openai.md: each difference is shown by a test that is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TEXT = (HERE.parents[1] / "docs" / "openai.md").read_text(encoding="utf-8")
DIFFERENCES = [
    " ".join(line.split()) for line in re.findall(r"^- (.*?)(?=\n- |\n\n|\Z)", TEXT, re.M | re.S)
]
NAMED = re.compile(r"\(`(test_\w+\.py)::(test_\w+)`\)$")


def test_there_are_differences_to_check() -> None:
    assert len(DIFFERENCES) > 30


@pytest.mark.parametrize("line", DIFFERENCES)
def test_each_difference_names_a_test_that_is_there(line: str) -> None:
    named = NAMED.search(line)
    assert named is not None, line
    file, name = named.groups()
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
    there = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert name in there
