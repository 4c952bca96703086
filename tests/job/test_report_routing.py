"""What pages and last lines say of a run whose records were shared among models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest

from job.analyse.routing import Routing
from job.pack.packing import make_item
from job.progress import View
from job.report import write_report
from job.report.routing import routing_rows
from job.report.words import Words
from job.show import closing_lines
from job.storage.place import Place
from serve.ask.contract import Usage
from serve.ask.settings import Prices
from tests.job import make
from tests.job.report_run import problem, theme, write_run
from tests.job.test_show import a_report

SCHEMA = orjson.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_bytes())


def price(amount: str) -> Prices:
    return Prices.model_validate({"currency": "CNY", "input": amount, "output": amount})


def shared(*, prices: tuple[str, str] | None = ("1", "10"), model: str = "large") -> dict[str, Any]:
    """Three easy records, of which one was handed on, and a hard one; 100,000 tokens a call."""
    known = (None, None) if prices is None else (price(prices[0]), price(prices[1]))
    routing = Routing(("small", model), known)
    easy = [make_item(make.record(f"the disk {n} is full")) for n in range(3)]
    hard = make_item(make.record("prove that the disk is full"))
    for item in (*easy, hard):
        item.tier = routing.begin(item.text)
    routing.replied(easy, Usage(90_000, 10_000))
    routing.escalate(easy[2])
    routing.replied([hard, easy[2]], Usage(90_000, 10_000))
    for item in (*easy, hard):
        routing.answered(item)
    return routing.facts()


def test_the_saving_leaves_out_what_was_asked_in_vain() -> None:
    facts = shared()
    first, last = facts["tiers"]
    assert [first["routed"], first["answered"], first["escalated"]] == [3, 2, 1]
    assert [last["routed"], last["answered"], last["escalated"]] == [1, 2, 0]
    # 0.1 at 1 and 0.1 at 10 a million; for one model two thirds of the first and all of the second.
    assert facts["cost"] == pytest.approx(1.1)
    assert facts["always_powerful"] == pytest.approx(10 * (0.1 * 2 / 3 + 0.1), abs=1e-4)
    assert facts["saved"] == pytest.approx(facts["always_powerful"] - 1.1, abs=1e-5)
    assert facts["escalated"] == 1


def test_the_facts_fit_the_schema() -> None:
    schema = SCHEMA["properties"]["timing"]["properties"]["routing"] | {"$defs": SCHEMA["$defs"]}
    for facts in (shared(), shared(prices=None)):
        jsonschema.validate(facts, schema)


def test_the_report_says_who_did_what_in_both_languages() -> None:
    report = {"timing": {"routing": shared()}}
    english = routing_rows(report, Words("en"))
    assert english == [
        ("What is easy: small", "2 answered, 1 handed on, 1 calls, 100,000 tokens, 0.10 CNY"),
        ("What is hard: large", "2 answered, 0 handed on, 1 calls, 100,000 tokens, 1.00 CNY"),
        ("Saved against large for every record (naming apart)", "0.57 CNY (34%)"),
    ]
    chinese = routing_rows(report, Words("zh"))
    assert chinese[0] == (
        "简单的：small",
        "回答 2 条，转交 1 条，调用 1 次，100,000 个 token，0.10 CNY",
    )
    assert chinese[2] == ("比全部使用 large 节省（不含问题命名）", "0.57 CNY（34%）")


def test_a_loss_is_said_as_one_and_without_prices_nothing_of_money() -> None:
    dear = routing_rows({"timing": {"routing": shared(prices=("10", "1"))}}, Words("en"))
    assert dear[-1][0].startswith("More than large for every record would have cost")
    free = routing_rows({"timing": {"routing": shared(prices=None)}}, Words("en"))
    assert [value for _, value in free] == [
        "2 answered, 1 handed on, 1 calls, 100,000 tokens",
        "2 answered, 0 handed on, 1 calls, 100,000 tokens",
    ]


def test_nothing_is_said_where_nothing_was_asked_or_one_model_did_all() -> None:
    idle = Routing(("small", "large"), (None, None)).facts()
    for timing in ({}, {"routing": idle}):
        assert routing_rows({"timing": timing}, Words("en")) == []
        plain = closing_lines(a_report(), View(), "x")
        assert closing_lines(a_report(timing=timing), View(), "x") == plain
    assert Routing(("large",), (None,)).facts() == {}


def test_the_last_lines_say_it_too() -> None:
    lines = closing_lines(a_report(timing={"routing": shared()}), View(), "x")
    assert "shared: 2 by small, 2 by large; 1 handed on; 0.57 CNY less than by large alone" in lines


def test_the_pages_show_it_whatever_the_models_are_called(tmp_path: Path) -> None:
    out = write_run(tmp_path, [problem(1)], [theme()])
    timing = orjson.loads((out / "timing.json").read_bytes())
    timing["routing"] = shared(model="<b>large|*</b>")
    (out / "timing.json").write_bytes(orjson.dumps(timing))
    report = write_report(Place.of(out))
    jsonschema.validate(orjson.loads(orjson.dumps(report)), SCHEMA)
    html, markdown = (
        (out / "report.html").read_text("utf-8"),
        (out / "report.md").read_text("utf-8"),
    )
    assert "2 answered, 1 handed on" in html
    assert "2 answered, 1 handed on" in markdown
    assert "&lt;b&gt;large|*&lt;/b&gt;" in html
    assert "<b>large" not in html + markdown
