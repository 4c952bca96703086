"""docs/openai.md: each difference is shown by a test that is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from serve.gateway.openapi import document
from serve.gateway.openapi_search import REPORT_CODES, REPORTS_CODES, SEARCH_CODES, Codes

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


SEARCHES = {
    ("/v1/search", "post"): SEARCH_CODES,
    ("/v1/reports", "get"): REPORTS_CODES,
    ("/v1/reports/{run}", "get"): REPORT_CODES,
    ("/v1/reports/{run}/{file}", "get"): REPORT_CODES,
}


@pytest.mark.parametrize(("path", "method"), SEARCHES)
def test_every_code_of_the_search_is_in_both_documents(path: str, method: str) -> None:
    codes: Codes = SEARCHES[path, method]
    told = document("0", metrics=True, search=True)["paths"][path][method]["responses"]
    assert {status for status in told if status != "200"} == set(codes)
    for status, known in codes.items():
        schema = told[status]["content"]["application/json"]["schema"]
        told_codes = schema["allOf"][1]["properties"]["error"]["properties"]["code"]["enum"]
        assert told_codes == list(known)
        assert all(code is None or f"`{code}`" in TEXT for code in known)
    assert f"`{method.upper()} {path}`" in TEXT
