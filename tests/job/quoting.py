"""Whether every quote of a finished run stands in its record."""

from __future__ import annotations

from pathlib import Path

from tests.command import read_json, read_results


def check_quotes(out: Path) -> int:
    """Check the quotes of all results, folded ones included, and of all evidence in the report;
    how many folded records have one."""
    rows = {row["id"]: row for row in read_results(out)}
    folded = 0
    for row in rows.values():
        quotes = [issue["quote"] for issue in row["issues"] if issue["quote"] is not None]
        assert all(quote in row["text"] for quote in quotes), row["id"]
        folded += bool(quotes) and row["via"] == "folded"
    report = read_json(out / "report.json")
    shown = [*report["themes"], *report["positive"]["themes"], *report["contradictions"]]
    for piece in (piece for group in shown for piece in group["evidence"]):
        whole = rows[piece["record"]]["text"]
        assert piece["quote"] is None or piece["quote"] in piece["text"]
        assert whole[piece["text_offset"] :].startswith(piece["text"])
    return folded
