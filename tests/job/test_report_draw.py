"""The charts: every number of the report is drawn, in bytes that never change."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from job.records import SEVERITIES
from job.report.chart import Chart, chart, counts_in
from job.report.draw import LABELS, NARROW, WIDE, draw_chart, draw_sparkline
from job.report.words import Words
from tests.job.report_run import NOON


def hours(*counts: dict[str, int]) -> list[dict[str, Any]]:
    """An hour of the report for each of `counts` (records by severity)."""
    none = dict.fromkeys(SEVERITIES, 0)
    return [
        {"hour": (NOON + timedelta(hours=n)).isoformat(), "records": sum(row.values())} | none | row
        for n, row in enumerate(counts)
    ]


def chart_of(rows: list[dict[str, Any]]) -> Chart:
    made = chart(
        {
            "first": rows[0]["hour"],
            "last": rows[-1]["hour"],
            "timezone": "Asia/Shanghai",
            "by_hour": rows,
        }
    )
    assert made is not None
    return made


def drawn(rows: list[dict[str, Any]], width: int = WIDE, language: Any = "en") -> str:
    words = Words(language)
    names: dict[str, str] = {s: words(s) for s in SEVERITIES if any(row[s] for row in rows)}
    made = chart_of(rows)
    return draw_chart(
        made,
        width,
        names,
        lambda bar: words.bar(bar.start, made.unit, False),
        lambda bar: words.bar(bar.start, made.unit, True),
        "Title & <more>",
        "Summary",
    )


def labels(svg: str, axis: str) -> list[str]:
    """The words beside an axis (x or y)."""
    root = ElementTree.fromstring(svg)  # noqa: S314  drawn by the code under test
    sides = [node for node in root.iter("g") if f"axis {axis}" in node.get("class", "")]
    return [text.text or "" for side in sides for text in side.iter("text")]


def test_the_worst_stands_on_top_and_each_part_says_what_it_is() -> None:
    svg = drawn(hours({"low": 1200, "high": 3}, {}, {"critical": 2}))
    assert re.findall(r'<g class="(\w+)"><rect', svg) == ["low", "high", "critical"]
    assert re.findall(r"<title>([^<]*)</title></rect>", svg) == [
        "2 Mar 20:00 · Low 1,200",
        "2 Mar 20:00 · High 3",
        "2 Mar 22:00 · Critical 2",
    ]


def test_it_can_be_heard_and_is_only_a_picture() -> None:
    root = ElementTree.fromstring(drawn(hours({"high": 1})))  # noqa: S314
    assert root.attrib == {"viewBox": f"0 0 {WIDE} 140", "role": "img"}
    assert [child.text for child in root[:2]] == ["Title & <more>", "Summary"]
    allowed = {"svg", "title", "desc", "g", "path", "rect", "text"}
    for node in root.iter():
        assert node.tag in allowed
        assert not {"style", "id", "href", "fill"} & node.attrib.keys()


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_labels_have_room(width: int) -> None:
    svg = drawn(hours(*[{"high": n + 1} for n in range(72)]), width, "zh")
    assert 2 <= len(labels(svg, "x")) <= LABELS[width]
    assert labels(svg, "x")[0] == "20:00"


def test_the_same_numbers_give_the_same_bytes() -> None:
    rows = hours({"high": 5, "info": 1}, {"medium": 2})
    assert drawn(rows) == drawn(rows)
    assert draw_sparkline((0, 3, 1), "x") == draw_sparkline((0, 3, 1), "x")
    assert not re.search(r"20\d\d-\d\d|pygal|chart-", drawn(rows))


@settings(max_examples=40)
@given(peak=st.integers(1, 3_000_000))
def test_guides_are_few_round_and_reach_the_peak(peak: int) -> None:
    svg = drawn(hours({"high": peak}))
    guides = [int(label.replace(",", "")) for label in labels(svg, "y")]
    assert guides[0] == 0
    assert 2 <= len(guides) <= 4
    assert guides[-1] >= peak
    assert set(str(guides[1]).rstrip("0")) <= set("125")


def test_a_sparkline_has_the_bars_of_the_chart() -> None:
    rows = hours({"high": 4}, {"low": 1}, {}, {"high": 2})
    theme = [{"hour": rows[0]["hour"], "records": 4}, {"hour": rows[3]["hour"], "records": 1}]
    counts = counts_in(chart_of(rows), theme)
    assert counts == [4, 0, 0, 1]
    svg = draw_sparkline(tuple(counts), "most at <20:00>")
    assert svg.count("<rect") == 2
    assert "<title>most at &lt;20:00&gt;</title>" in svg
    assert len(svg) < 500
