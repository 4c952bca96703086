"""report.html and report.md: whatever the records hold, the pages only show it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest
from markdown_it import MarkdownIt

from job.records import Rejected, Result
from job.report import write_report
from job.report.escape import code, prose
from job.report.markdown import render_markdown
from job.report.page import LIMIT, render_html
from job.report.words import Language, Words, share
from job.storage.place import Place
from tests.job.report_run import issue, problem, record, theme, write_run

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> ]]> -->",
    "[click](javascript:alert(1)) ![x](http://evil.example/p.png) # not a heading | cell `code`",
    "=cmd|' /C calc'!A0",
    "\u202eright to left\u202c and \u2066isolate\u2069 \x1b[31mred\x1b[0m",
    "x" * 3_000,
    '" onmouseover="alert(3) \' {{ 7 * 7 }} {% raw %} &lt;b&gt;',
    "@everyone look at https://evil.example and www.evil.example\n\n# heading\n- list\n1. one",
)


MARKUP = {"link_open", "image", "html_block", "html_inline", "fence", "code_block"}
"""What no text from outside may become in Markdown."""


class Page(HTMLParser):
    """What a browser would make of the page: its elements, its marked text, all its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.marks: list[str] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)
        if tag == "mark":
            self.marks.append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "mark" in self._open:
            self.marks[-1] += data
        if "style" not in self._open:
            self.text.append(data)

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag in tags]


@pytest.fixture(scope="module", params=["en", "zh"])
def hostile(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which every text that comes from outside is hostile."""
    results, themes = [], []
    for n, text in enumerate(HOSTILE):
        words = dict.fromkeys(("title", "summary", "cause", "action", "severity_reason"), text)
        themes.append(theme(f"t-{n}", **words))
        found = issue(theme=f"t-{n}", event=text, cause=text, quote=text)
        fields = {"text": f"before {text} after", "source": text, "user": text, "service": text}
        results += [problem(10 * n + m, found, **fields) for m in range(3)]
        results.append(Result(record(900 + n, text=text), "answered", "positive", (found,)))
    rejected = [Rejected(text, 1, "not_json", text, text) for text in HOSTILE]
    out = tmp_path_factory.mktemp("hostile") / "out"
    write_run(out, results, themes, rejected, language=request.param, model=HOSTILE[0])
    write_report(Place.of(out))
    return out


def page_of(out: Path) -> Page:
    return Page((out / "report.html").read_text("utf-8"))


def test_the_page_holds_nothing_that_runs_or_loads(hostile: Path) -> None:
    page = page_of(hostile)
    tags = {tag for tag, _ in page.elements}
    assert not tags & {
        "script",
        "img",
        "iframe",
        "object",
        "embed",
        "form",
        "video",
        "base",
        "foreignobject",
    }
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "src"], tag
        href = attributes.get("href")
        assert href is None or href.startswith(("#", "data:,")), href
    html = (hostile / "report.html").read_text("utf-8")
    assert "default-src 'none'" in html
    assert "url(" not in html
    assert "@import" not in html


def test_hostile_text_is_shown_as_it_is(hostile: Path) -> None:
    text = "".join(page_of(hostile).text)
    for words in HOSTILE:
        assert words in text


def test_every_marked_quote_stands_in_a_record(hostile: Path) -> None:
    marks = page_of(hostile).marks
    assert len(marks) >= 3 * len(HOSTILE)
    for mark in marks:
        assert any(mark and mark in f"before {words} after" for words in HOSTILE)


def test_the_page_is_in_the_language_of_the_report(hostile: Path) -> None:
    language = orjson.loads((hostile / "run.json").read_bytes())["language"]
    assert page_of(hostile).all("html")[0]["lang"] == Words(language).tag


def test_headings_go_down_one_level_at_a_time(hostile: Path) -> None:
    levels = [int(tag[1]) for tag, _ in page_of(hostile).elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_links_on_the_page_lead_somewhere(hostile: Path) -> None:
    page = page_of(hostile)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for attributes in page.all("a"):
        assert (attributes["href"] or "")[1:] in ids


def test_what_was_praised_has_a_place_of_its_own_on_the_page(tmp_path: Path) -> None:
    kind = issue(theme="t-kind", severity="info")
    praised = Result(record(1, kind="feedback"), "answered", "positive", (kind,))
    out = write_run(tmp_path / "out", [problem(0), praised], [theme(), theme("t-kind")])
    write_report(Place.of(out))
    assert [tag for tag, each in page_of(out).elements if each.get("id") == "t-kind"] == ["div"]


def test_hostile_markdown_makes_no_markup(hostile: Path) -> None:
    text = (hostile / "report.md").read_text("utf-8")
    tokens = list(_flat(MarkdownIt("commonmark").enable("table").parse(text)))
    kinds = {token.type for token in tokens}
    assert not kinds & MARKUP
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def _flat(tokens: list[Any]) -> Iterator[Any]:
    for token in tokens:
        yield token
        yield from _flat(token.children or [])


@pytest.mark.parametrize("text", HOSTILE)
def test_names_of_services_runs_and_known_problems_are_only_shown(
    text: str, tmp_path: Path
) -> None:
    out = write_run(tmp_path / "out", [problem(n) for n in range(3)], [theme()])
    report = orjson.loads(orjson.dumps(write_report(Place.of(out))))
    named = [{"name": text, "records": 2}]
    varied = {"label_before": text, "label_after": text, "min": 1, "max": 2, "unit": text}
    near = {"record": text, "line": 1, "time": None, "level": text, "text": text}
    (row,) = report["themes"]
    row |= {"services": named, "hosts": named, "top_users": named, "owner": text, "status": "new"}
    row |= {"varied": [varied], "incident": "i-1"}
    row["evidence"][0]["neighbours"] = {"before": [near], "after": [near]}
    run = {"path": text, "day": None, "records": 3, "problems": 3, "model": text}
    gone = {"id": "g", "title": text, "severity": "low", "kind": "feedback", "before": 1}
    report["comparison"] = {
        "mode": "run",
        "comparable": True,
        "reason": None,
        "runs": [run],
        "records": None,
        "problems": None,
        "counts": None,
        "gone": [gone | {"last_seen": None}],
    }
    incident: dict[str, Any] = {
        "id": "i-1",
        "title": text,
        "label": "likely",
        "first": None,
        "last": None,
    }
    incident |= {"records": 3, "severity": "high", "themes": ["t-pay"], "services": [text]}
    message = {"theme": "t-pay", "text": text, "records": 3}
    report["incidents"] = [incident | {"hosts": [text], "why": text, "messages": [message]}]
    report["known"]["unused"] = [text]

    page = Page(render_html(report))
    assert not {tag for tag, _ in page.elements} & {"script", "img"}
    assert not [a for _, attributes in page.elements for a in attributes if a.startswith("on")]
    assert " ".join("".join(page.text).split()).count(" ".join(text.split())) >= 12
    tokens = _flat(MarkdownIt("commonmark").enable("table").parse(render_markdown(report)))
    assert not {token.type for token in tokens} & MARKUP


@pytest.mark.parametrize("text", HOSTILE)
def test_escaped_prose_and_code_read_as_written(text: str) -> None:
    seen = re.sub(
        "[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", "\ufffd", " ".join(text.split())
    )
    for escaped in (prose(text), code(text)):
        inline = MarkdownIt("commonmark").parse(f"a {escaped} b")[1]
        shown = "".join(child.content for child in inline.children or [])
        assert shown.replace("\u2060", "") == f"a {seen} b"


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:\.\d+)?", text.replace(",", "")))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_number_of_headline_cards_and_trust_is_in_the_report(
    language: Language, tmp_path: Path
) -> None:
    results = [problem(n, user=f"u{n % 5}", text="it failed") for n in range(1_234)]
    results += [Result(record(2_000 + n), "review", "unclear") for n in range(17)]
    out = write_run(tmp_path / "out", results, [theme()], language=language, model="chat-large")
    report = write_report(Place.of(out))
    html = (out / "report.html").read_text("utf-8")
    shown = re.search(r"<main>(.*?)<h2 id=\"sources\"", html, re.DOTALL)
    assert shown is not None
    # The chart has round numbers at its side and hours without records below; see test_draw.
    visible = re.sub(r"<svg.*?</svg>|<nav.*?</nav>|<[^>]*>", " ", shown[1], flags=re.DOTALL)
    known = numbers(orjson.dumps(report).decode()) | numbers(report["headline"])
    known |= {number.lstrip("0") or "0" for number in known}
    known |= {f"{100 * report['quality']['analysed_share']:.1f}", share(1.0)[:-1]}
    known |= {"1", "2", "3"}  # the numbers of the list of actions, and of cards in a section
    assert numbers(visible) <= known
    assert "1,234" in visible


@pytest.mark.slow
def test_a_page_stays_within_its_limit(tmp_path: Path) -> None:
    results, themes = [], []
    for t in range(70):
        themes.append(theme(f"t-{t}"))
        quote = f"{t} " + "'\"<&>" * 70
        text = quote + "'<&>\"" * 200
        found = issue(theme=f"t-{t}", quote=quote)
        results += [problem(100 * t + n, found, text=f"{chr(65 + n)}{text}") for n in range(21)]
    out = write_run(tmp_path / "out", results, themes)
    write_report(Place.of(out))
    assert (out / "report.html").stat().st_size <= LIMIT
    page = page_of(out)
    assert len([a for a in page.all("article") if (a["class"] or "").startswith("card")]) == 60


def test_a_number_with_decimals_is_no_list() -> None:
    assert prose("0.040 USD") == "0.040 USD"
    assert prose("2) two") == r"2\) two"
