"""Every number that a reader meets stands in report.json, and every quote in its record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from job.history.baseline import EarlierRuns
from job.records import Result
from job.report import write_report
from job.report.view import View
from job.report.words import share
from job.storage.place import Place
from tests.job.report_run import NOON, issue, problem, record, theme, write_run
from tests.job.test_baseline import finished

_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:T[\d:+.]*)?")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?%?")
_SPELLED = {"two": "2", "three": "3", "nine": "9"}
_NOT_COUNTED = {
    "quote",
    "text",
    "title",
    "summary",
    "cause",
    "action",
    "command",
    "severity_reason",
}


def numbers_of(value: Any) -> Iterator[str]:
    """Every number of a report as a page may write it: counts, shares, parts of times."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in _NOT_COUNTED:
                yield from numbers_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from numbers_of(inner)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield f"{value:,}"
    elif isinstance(value, float):
        yield share(value)
        yield f"{value:,.1f}"
    elif isinstance(value, str) and _TIME.match(value):
        for part in re.findall(r"\d+", value):
            yield from (part, str(int(part)))


def in_words(text: str) -> list[str]:
    for word, number in _SPELLED.items():
        text = re.sub(rf"\b{word}\b", number, text)
    return _NUMBER.findall(text)


def a_busy_day(out: Path, **run: Any) -> Path:
    """Several themes, two of them an outage, with users, services, ratings and folded records."""
    results: list[Result] = []

    def add(count: int, theme: str, minutes: int, severity: Any = "high", **fields: Any) -> None:
        for n in range(count):
            number = len(results)
            time = NOON + timedelta(days=1, minutes=minutes + n % 13)
            said = issue(theme=theme, severity=severity, quote="shows an error")
            results.append(problem(number, said, issue(theme=theme), time=time, **fields))

    add(30, "t-pay", 0, "critical", service="shop", host="web-1", user="ann")
    add(25, "t-mail", 3, service="shop", host="web-2", user="bo")
    add(7, "t-login", 300, "low", kind="feedback", rating=5.0)
    add(3, "t-disk", 500, "medium", kind="conversation")
    number = len(results)
    results += [Result(record(number + n, kind="operation"), "folded", "normal") for n in range(40)]
    results.append(Result(record(number + 50), "review", "unclear"))
    themes = [
        theme("t-pay", severity="critical", severity_reason="All 60 issues are critical"),
        *(theme(f"t-{name}", title=name, severity="low") for name in ("mail", "login", "disk")),
    ]
    return write_run(out, results, themes, finished="2026-03-04T01:00:14Z", **run)


@pytest.fixture(scope="module", params=["en", "zh"])
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A compared report with an incident and a muted problem."""
    folder = tmp_path_factory.mktemp(request.param)
    before = finished(folder / "mon", 0, {"pay": 10, "mail": 4}, language=request.param)
    (folder / "known.yaml").write_text("disk: {muted_until: 2026-04-01}\n")
    out = a_busy_day(folder / "tue", language=request.param)
    root = Place.of(out)
    return write_report(root, None, EarlierRuns(str(before), root), folder / "known.yaml")


def test_numbers_of_the_first_screen(report: Any) -> None:
    view = View(report)
    assert len(report["incidents"]) == 1
    assert report["problems"]["muted"] == 1
    known = set(numbers_of(report))
    sentences = [*view.headline(), view.detail(), view.trust()]
    sentences += [sentence for _, sentence in view.notices()]
    sentences += [incident["why"] for incident in report["incidents"]]
    said = [number for sentence in sentences for number in in_words(sentence)]
    assert len(said) >= 10
    assert [number for number in said if number not in known] == []


def test_numbers_of_the_cards(report: Any) -> None:
    view = View(report)
    cards = [card for cards in view.cards.values() for card in cards]
    assert len(cards) == 3
    for card in cards:
        known = set(numbers_of(card.theme))
        facts = [*card.facts(), *card.of_kind(), card.share(), card.change() or ""]
        facts += [str(n) for _, named, _ in card.affected() for _, n in named]
        said = [number for fact in facts for number in in_words(fact)]
        assert len(said) >= 5
        assert [number for number in said if number not in known] == []


def test_quotes_stand_in_their_records(report: Any) -> None:
    pieces = [piece for theme in report["themes"] for piece in theme["evidence"]]
    assert sum(piece["quote"] is not None for piece in pieces) >= 40
    for piece in pieces:
        assert piece["quote"] is None or piece["quote"] in piece["text"]
