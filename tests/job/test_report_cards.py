"""What the pages say beside the numbers: changes, incidents, contradictions, cards, account."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from job.records import Rejected
from job.report import write_report
from job.report.card import Card, same_words, tidy
from job.report.escape import table
from job.report.markdown import render_markdown
from job.report.page import render_html
from job.report.words import Language, Words
from job.storage.place import Place
from tests.job.report_run import issue, problem, theme, write_run


def made(tmp_path: Path, *themes: dict[str, Any], language: Language = "en") -> dict[str, Any]:
    """A report in which each of `themes` has three records, as a value that can be changed."""
    results = []
    for n, row in enumerate(themes):
        found = issue(theme=row["id"], severity=row["severity"], quote="page")
        for m in range(3):
            text = f"the payment page fails, attempt {10 * n + m}"
            results.append(problem(60 * n + m, found, text=text, user=f"u{m}"))
    out = write_run(tmp_path / "out", results, themes, language=language)
    report: dict[str, Any] = orjson.loads(orjson.dumps(write_report(Place.of(out))))
    return report


def compared(report: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """`report` after a comparison with one earlier run."""
    report["comparison"] = {
        "mode": "run",
        "comparable": True,
        "reason": None,
        "runs": [{"path": "r", "day": "2026-03-01", "records": 9, "problems": 4, "model": "m"}],
        "records": {"before": 9, "now": 6},
        "problems": {"before": 4, "now": 6},
        "counts": {"new": 0, "worse": 0, "same": 0, "better": 0, "gone": 0},
        "gone": [],
    } | fields
    return report


def text_of(html: str) -> str:
    return " ".join(re.sub("<[^>]*>", " ", html.partition("<main>")[2]).split())


def card(**fields: Any) -> Card:
    values: dict[str, Any] = {
        "id": "t",
        "title": "T",
        "summary": None,
        "cause": None,
        "basis": "inferred",
    }
    values |= {"severity": "high", "records": 1, "muted_until": None, "returned": False}
    return Card(values | fields, Words("en"), None, False)


def test_a_cause_that_repeats_the_event_is_no_cause() -> None:
    words = "ERROR IN CONTACTING RM"
    one = card(title=words, summary=words + ".", cause=words)
    assert (one.summary, one.cause) == (None, None)
    other = card(title="Payments fail", summary="Payments fail since noon.", cause="No disk space")
    assert (other.summary, other.cause) == ("Payments fail since noon.", "No disk space")


def test_a_theme_without_a_cause_says_so(tmp_path: Path) -> None:
    report = made(tmp_path, theme(cause=None))
    for page in (render_html(report), render_markdown(report)):
        assert "Not stated in the records" in page


def test_a_title_that_was_cut_is_given_whole_where_it_is_short_enough() -> None:
    whole = "App crashed while uploading a review photo of the humidifier"
    assert card(title=whole[:48] + "…", summary=whole + ".").heading == whole
    assert card(title="App crashed…", summary="App crashed " * 20).heading == "App crashed…"


def test_titles_have_no_gaps_where_ids_were() -> None:
    assert (
        tidy("Diagnostics report from : Error  found ,") == "Diagnostics report from: Error found,"
    )
    assert tidy("a :b") == "A :b"


def test_titles_begin_as_sentences_do_and_names_stay() -> None:
    assert tidy("the refund has not arrived") == "The refund has not arrived"
    assert tidy("order-api does not answer") == "order-api does not answer"
    assert tidy("退款没有到账") == "退款没有到账"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Payments fail.", "payments fail", True),
        ("退款没有到账。", "退款没有到账", True),
        ("", "", False),
        ("disk full", "export failed because the disk is full", False),
    ],
)
def test_same_words(one: str, other: str, same: bool) -> None:
    assert same_words(one, other) is same


def test_changes_are_said_once_each_with_their_numbers(tmp_path: Path) -> None:
    names = ("new", "worse", "better", "same")
    themes = [theme(f"t-{name}", title=f"Theme {name}") for name in names]
    report = compared(made(tmp_path, *themes))
    for row in report["themes"]:
        row["status"] = row["id"][2:]
        row["change"] = {"before": 12.5, "now": 3, "ratio": 0.24}
    report["comparison"]["counts"] |= {"new": 1, "worse": 1, "better": 1, "same": 1, "gone": 1}
    gone = {"id": "t-gone", "title": "Theme gone", "severity": "low", "kind": "feedback"}
    report["comparison"]["gone"] = [gone | {"before": 7, "last_seen": "2026-03-01"}]

    text = text_of(render_html(report))
    changes = text[text.index("Changes against") : text.index("Seen in operation logs")]
    assert "against 1 March 2026" in changes
    assert "Records 9 → 6" in changes
    assert "New 1 problem High Theme new 3 records" in changes
    assert "▲ Worse 1 problem High Theme worse 12.5 before, 3 now" in changes
    assert "▼ Better 1 problem High Theme better 12.5 before, 3 now" in changes
    assert "Gone 1 problem Low Theme gone 7 records before · last seen 1 Mar" in changes
    assert "1 more is much as it was." in changes
    assert "Theme same" not in changes
    markdown = render_markdown(report)
    assert "- **Low** Theme gone · 7 records before · last seen 1 Mar" in markdown


@pytest.mark.parametrize(
    ("seen", "heading"),
    [
        ({"operation": 51, "feedback": 49}, "Seen in several kinds of records"),
        ({"operation": 66, "feedback": 33}, "Seen mostly in operation logs"),
        ({"operation": 3}, "Seen in operation logs"),
    ],
)
def test_mostly_is_said_only_where_it_is_so(
    tmp_path: Path, seen: dict[str, int], heading: str
) -> None:
    report = made(tmp_path, theme())
    report["themes"][0]["by_kind"] = seen
    assert f"## {heading} · 1 problem" in render_markdown(report)
    assert f"{heading} 1 problem" in text_of(render_html(report))


def test_a_single_bar_is_no_picture(tmp_path: Path) -> None:
    html = render_html(made(tmp_path, theme()))
    assert "<figure" in html
    assert "Problem records, by how severe each is" in text_of(html)
    assert '<div class="plot' not in html
    assert '<div class="plot' in render_html(made(tmp_path / "b", theme("t-a"), theme("t-b")))


def test_times_tell_their_year_where_the_day_is_not_enough(tmp_path: Path) -> None:
    report = made(tmp_path, theme())
    assert "· 20:00–20:02" in text_of(render_html(report))
    report["period"]["first"] = "2025-12-31T23:00:00+08:00"
    assert "· 2 March 2026 20:00–20:02" in text_of(render_html(report))


def test_nothing_changed_is_said_too(tmp_path: Path) -> None:
    report = compared(made(tmp_path, theme()))
    report["themes"][0]["status"] = "same"
    report["comparison"]["counts"]["same"] = 1
    text = text_of(render_html(report))
    assert "No change: 1 problem is much as it was." in text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_where_nothing_is_comparable_it_says_why_and_draws_no_arrow(
    language: Language, tmp_path: Path
) -> None:
    report = made(tmp_path, theme(), language=language)
    compared(report, comparable=False, reason="model", records=None, problems=None, counts=None)
    words = Words(language)
    notice = words("notice_not_comparable", reason=words("not_comparable_model"))
    for page in (text_of(render_html(report)), render_markdown(report)):
        assert notice in page
        assert not re.search("[▲▼→]", page)
        assert page.index(notice) < page.index(words("actions"))


def test_an_incident_is_called_likely_and_leads_to_its_members(tmp_path: Path) -> None:
    report = made(tmp_path, theme("t-a", title="RM lost"), theme("t-b", title="Lease lost"))
    report["incidents"] = [
        {
            "id": "i-1",
            "title": "RM lost",
            "label": "likely",
            "first": "2026-03-02T20:00:00+08:00",
            "last": "2026-03-02T20:05:00+08:00",
            "records": 1095,
            "severity": "high",
            "themes": ["t-a", "t-b"],
            "services": ["rm"],
            "hosts": ["sa-41"],
            "why": "They began together.",
            "messages": [
                {"theme": "t-a", "text": "lost the RM <1>", "records": 600},
                {"theme": "t-b", "text": "lease for … s", "records": 495},
            ],
        }
    ]
    report["themes"][0]["incident"] = "i-1"
    html = render_html(report)
    text = text_of(html)
    assert "1 likely incident of 1,095 records" in text
    assert "Likely one incident 1,095 records · 2 problems · 20:00–20:05 RM lost" in text
    assert "lost the RM &lt;1&gt; 600 records lease for … s 495 records" in text
    assert "Services rm Hosts sa-41" in text
    assert html.count('href="#t-b"') >= 1
    assert html.count('href="#i-1"') == 1
    assert "1,095 records" in render_markdown(report)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_contradictions_show_both_sides(language: Language, tmp_path: Path) -> None:
    report = made(tmp_path, theme(), language=language)
    piece = report["themes"][0]["evidence"][0]
    counter = {"record": "r9", "source": "logs/ops.log", "line": 7, "time": None, "text": "DENIED"}
    report["contradictions"] = [
        {"rule": rule, "records": 1, "evidence": [piece | {"counter": counter}]}
        for rule in ("rating_against_text", "level_against_outcome", "promise_against_log")
    ]
    for page in (text_of(render_html(report)), render_markdown(report)):
        assert page.count("DENIED") == 3
        assert page.count("logs/ops.log:7") == 3
        assert Words(language)("promise_against_log") in page


def test_muted_themes_are_counted_and_out_of_the_way(tmp_path: Path) -> None:
    report = made(tmp_path, theme("t-a", title="Loud"), theme("t-b", title="Quiet"))
    quiet = next(t for t in report["themes"] if t["id"] == "t-b")
    quiet |= {"muted_until": "2026-04-01", "needs_action": False, "owner": "ann"}
    report["known"] |= {"muted": {"themes": 1, "records": 3}, "unused": ["coupon"]}
    html = render_html(report)
    assert not re.search('<article[^>]*id="t-b"', html)
    known = text_of(html)[text_of(html).index("Known problems") :]
    assert "1 muted, 3 records" in known
    assert "Muted until 1 Apr" in known
    assert "with ann" in known
    assert "match no problem of this run: coupon" in known


def test_a_card_says_of_how_many_and_who_and_what_differs(tmp_path: Path) -> None:
    report = made(tmp_path, theme())
    report["themes"][0] |= {
        "of_kind": {"feedback": {"records": 12, "of": 80, "share": 0.15}},
        "services": [{"name": "pay", "records": 9}],
        "services_total": 4,
        "top_users": [{"name": "u1", "records": 1}],
        "days_seen": {"days": 9, "since": "2026-02-22"},
        "varied": [
            {"label_before": "lease renewal failed,", "label_after": "", "min": 30, "max": 356}
            | {"unit": "s"}
        ],
    }
    text = text_of(render_html(report))
    assert "12 of 80 pieces of feedback" in text
    assert "Services pay ×9 and 3 more" in text
    assert "What differs lease renewal failed, 30–356 s" in text
    assert "on 9 days in a row, since 22 Feb" in text
    assert "u1 ×1" not in text


def test_reasons_steps_and_flags_have_names(tmp_path: Path) -> None:
    rejected = [Rejected("a.csv", 3, "bad_csv", "", "x"), Rejected("a.csv", 9, "odd_new", "", "y")]
    results = [problem(n, flags=("bad_bytes",)) for n in range(3)]
    out = write_run(tmp_path / "out", results, [theme()], rejected)
    report = write_report(Place.of(out))
    for page in (text_of(render_html(report)), render_markdown(report)):
        assert "Broken CSV row" in page
        assert re.search(r"odd\\?_new", page)
        assert "Bytes that are no text in its encoding" in page
        assert "Grouping problems" in page


def test_tables_are_aligned_for_a_terminal_in_both_scripts() -> None:
    assert table(["时间", "All"], [["09:00", 1], ["3月2日 10:00", 1_234]]).splitlines() == [
        "| 时间         |   All |",
        "| ------------ | ----: |",
        "| 09:00        |     1 |",
        "| 3月2日 10:00 | 1,234 |",
    ]
