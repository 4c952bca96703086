"""What pages and the progress say of the size of packs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import jsonschema
import orjson

from job.pack.cost import Bound, Pack, Rates
from job.pack.size import Known, PackSize
from job.progress import View
from job.report.packs import pack_rows
from job.report.words import Words
from job.show import progress_lines

SCHEMA = orjson.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_bytes())


def packs(fixed: int | None = None) -> dict[str, Any]:
    """Three packs of 5,000 tokens, of which one lost two rows, and one of 1,000."""
    size = PackSize(Rates(None, None, 20, 8192), fixed)
    for again in (0, 2, 0):
        size.observe(Pack(5000, 40, again, 5260, 1600, 4.0))
    size.observe(Pack(1000, 8, 0, 1260, 320, 1.5))
    facts: dict[str, Any] = orjson.loads(orjson.dumps(size.facts()))
    return facts


def test_the_facts_fit_the_schema() -> None:
    schema = SCHEMA["properties"]["timing"]["properties"]["packs"] | {"$defs": SCHEMA["$defs"]}
    for facts in (packs(), packs(fixed=3000), PackSize(Rates(None, None, 20, 8192)).facts()):
        jsonschema.validate(facts, schema)


def test_the_report_says_which_size_and_why_in_both_languages() -> None:
    report = {"timing": {"packs": packs()}}
    assert pack_rows(report, Words("en")) == [
        (
            "In use at the end",
            "5,000 tokens, 4,000 in the slow lane, bigger ones do not fit the context",
        ),
        ("What the run waited for", "the calls in flight"),
        ("About 5,000 tokens", "calls 3, 4 s each; rows 120, asked again 2"),
        ("Slow lane, and packs that were not full", "calls 1, 1.5 s each; rows 8, asked again 0"),
    ]
    assert pack_rows(report, Words("zh"))[2] == (
        "约 5,000 个 token",
        "调用 3 次，120 条，重问 2 条，每次 4 秒",
    )
    assert pack_rows({"timing": {}}, Words("en")) == []


def test_every_reason_for_a_size_has_words_in_both_languages_and_a_place_in_the_schema() -> None:
    whys = [*get_args(Known), *get_args(Bound)]
    schema = SCHEMA["properties"]["timing"]["properties"]["packs"]
    assert sorted(schema["properties"]["why"]["enum"]) == sorted(whys)
    for words in (Words("en"), Words("zh")):
        assert not [why for why in whys if words.name("pack_why", why) == why]


def test_a_fixed_size_is_told_as_the_user_gave_it() -> None:
    rows = pack_rows({"timing": {"packs": packs(fixed=6000)}}, Words("en"))
    assert rows[0][1] == "6,000 tokens, 4,800 in the slow lane, as --pack-tokens says"


def test_the_progress_tells_the_size_in_use() -> None:
    limiter = {"in_use": 1, "concurrency": 5, "breaker": "closed", "rpm": None}
    view = View(limiter=limiter, facts={"packs": packs()})
    assert any(line.endswith("packs of 5,000 tokens") for line in progress_lines(view, 1, None))
