"""What a canary's verdict means for its run, and how it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from job.compare.comparison import Comparison, Side, compare
from job.compare.meaning import Meaning
from job.compare.positions import Place
from job.compare.table import table
from job.compare.verdict import Reason
from job.records import Issue, Record, Result
from job.report.trial import canary_notice, reason_in_words
from job.report.words import Language, Words
from job.run_folder import RunFolder
from job.storage.place import Place as Folder
from job.trial.canary import Canary, kept_canary
from job.trial.trial import part_of
from job.write import write_json
from serve.ask.ask import CallCounts
from tests.job.make import record

RECORDS = 120


ASKED: list[Record] = [record(f"disk is full on {n}") for n in range(RECORDS)]


def side(name: str, wrong_from: int | None = None, packed: bool = False) -> Side:
    """Answers of one way; in packs of 40, wrong from a position on."""
    results, places = [], {}
    for n, each in enumerate(ASKED):
        position = n % 40 + 1
        wrong = wrong_from is not None and position >= wrong_from
        event = "nothing of the kind" if wrong else "the disk is full"
        issue = Issue(event, "old logs", "stated", "rotate them", "high", "disk is full")
        results.append(Result(each, "answered", "problem", (issue,)))
        if packed:
            places[each.id] = Place(n // 40, position, 40, True)
    counts = CallCounts(requests=3 if packed else RECORDS, tokens_in=1000, tokens_out=100)
    return Side(name, results, places, counts, 30.0)


def comparison(wrong_from: int | None) -> Comparison:
    single = side("single")
    about = {"sample": {"records": RECORDS, "distinct": 1200, "share_wanted": 0.1}}
    return compare(single, side("packed", wrong_from, True), single, Meaning(), about)


@pytest.mark.parametrize(("wrong_from", "mode"), [(None, "packed"), (25, "single")])
def test_the_run_goes_on_as_the_verdict_says(
    tmp_path: Path, wrong_from: int | None, mode: str
) -> None:
    canary = Canary(comparison(wrong_from).as_json())
    assert canary.mode == mode
    assert canary.facts()["mode"] == mode
    assert canary.facts()["calls"] == 2 * RECORDS + 3
    assert [f"position {wrong_from} of 40" in words for words in canary.warnings()] == (
        [True] if wrong_from else []
    )
    folder = RunFolder(Folder.of(str(tmp_path)))
    assert kept_canary(folder) is None
    write_json(folder.root / "canary.json", canary.found)
    kept = kept_canary(folder)
    assert kept is not None
    assert kept.facts() == canary.facts()
    for damaged in ("{", "{}", "[]", "3", '{"verdict": "bad"}'):
        (tmp_path / "canary.json").write_text(damaged)
        assert kept_canary(folder) is None


def test_an_undecided_canary_keeps_packs_and_says_so() -> None:
    found = comparison(None).as_json() | {"verdict": "undecided", "reason": "too_few"}
    canary = Canary(found)
    assert canary.mode == "packed"
    assert "undecided" in canary.warnings()[0]
    assert canary_notice({"canary": canary.facts()}, Words("en")) is None


@pytest.mark.parametrize("fading", ["first", "second"])
def test_of_two_sides_in_packs_none_is_blamed_for_the_other(fading: str) -> None:
    first = side("old", 25 if fading == "first" else None, packed=True)
    second = side("new", 25 if fading == "second" else None, packed=True)
    found = compare(first, second, first, Meaning())
    assert (found.verdict.reason, found.verdict.position) == ("one_fades", 25)
    lines = table(found, reason_in_words(found.verdict.as_json(), Words("en")))
    assert "one of them gets worse" in lines[-2]
    assert "--mode single" not in lines[-1]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("reason", get_args(Reason))
def test_every_reason_has_words(language: Language, reason: str) -> None:
    verdict: dict[str, Any] = {
        "reason": reason,
        "before": 0.99,
        "after": 0.25,
        "position": 25,
        "longest_pack": 17,
        "records": 120,
    }
    words = reason_in_words(verdict, Words(language))
    assert "{" not in words
    assert "None" not in words
    assert ("25" in words) == (reason != "too_few")
    assert ("17" in words) == (reason in ("fades", "one_fades", "short_packs"))


def test_only_a_bad_canary_stands_on_top_of_the_report() -> None:
    bad, good = (Canary(comparison(start).as_json()).facts() for start in (25, None))
    notice = canary_notice({"canary": bad}, Words("zh"))
    assert notice is not None
    assert "从第 25 条起" in notice
    assert canary_notice({"canary": good}, Words("zh")) is None
    assert canary_notice({}, Words("en")) is None


def test_the_table_shows_what_the_verdict_rests_on() -> None:
    found = comparison(25)
    lines = table(found, reason_in_words(found.verdict.as_json(), Words("en")))
    text = "\n".join(lines)
    assert "verdict   bad: answers get worse from position 25 of 40" in text
    assert any(line.split() == ["calls", "120", "3", "120"] for line in lines)
    assert any(line.startswith("1-8 ") and line.endswith("100.0%     100.0%") for line in lines)
    assert any(line.startswith("33-40 ") and "0.0%" in line for line in lines)
    assert "--mode single" in lines[-1]


def test_a_fifth_is_asked_twice_and_no_less_than_sixty() -> None:
    assert [part_of(n) for n in (20, 100, 600, 10_000)] == [20, 60, 120, 200]
