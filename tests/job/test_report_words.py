"""The two catalogues say the same things, and nothing that no page says."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from string import Formatter

import pytest

import job.report
from job.records import KINDS, OUTCOMES, SEVERITIES, VIAS
from job.report import chinese, chinese_names, english, english_names
from job.report.words import Words, share


def values(words: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(words) if name}


def test_both_catalogues_have_the_same_keys_and_values() -> None:
    assert list(english.WORDS) == list(chinese.WORDS)
    for key, words in english.WORDS.items():
        for form in words.split("|"):
            assert values(form) == values(chinese.WORDS[key]), key


def test_every_key_is_used() -> None:
    folder = Path(job.report.__path__[0])
    sources = [*folder.glob("*.py"), *folder.glob("*.j2")]
    catalogues = {
        f"{name}{of}" for name in ("english", "chinese") for of in ("", "_cost", "_names")
    }
    source = "\n".join(path.read_text("utf-8") for path in sources if path.stem not in catalogues)
    values = (*SEVERITIES, *KINDS, *VIAS, *OUTCOMES)
    # Keys that are put together: `f"per_{unit}"`, `w(found.rule ~ "_note")`.
    made = r"^(per|count|trust|spark|not_comparable|mostly|only|against|compared|status|of)_"
    made += "|^(incident_why|rating_against_text|level_against_outcome|promise_against_log)"
    made += "|^not_compressed_"
    unused = [k for k in english.WORDS if f'"{k}"' not in source and k not in values]
    assert [key for key in unused if not re.search(made, key)] == []


def test_things_that_stations_count_have_names_in_both_languages() -> None:
    assert list(english_names.NAMES) == list(chinese_names.NAMES)
    assert Words("en").name("reason", "bad_json") == "Broken JSON"
    assert Words("zh").name("reason", "bad_json") == "JSON 格式有误"
    assert Words("zh").name("flag", "unheard_of") == "unheard_of"


def test_one_is_singular_in_english() -> None:
    words = Words("en")
    assert words("records", n=1) == "1 record"
    assert words("records", n=1_200) == "1,200 records"
    assert Words("zh")("records", n=1_200) == "1,200 条记录"


@pytest.mark.parametrize(
    ("first", "last", "with_day", "english_span", "chinese_span"),
    [
        ("2026-03-02T10:05", "2026-03-02T18:10", False, "10:05–18:10", "10:05–18:10"),
        ("2026-03-02T10:05", "2026-03-02T10:05", False, "10:05", "10:05"),
        ("2026-03-02T10:05", "2026-03-02T18:10", True, "2 Mar 10:05–18:10", "3月2日 10:05–18:10"),
        (
            *("2026-03-02T10:05", "2026-03-03T09:00", True),
            "2 Mar 10:05 – 3 Mar 09:00",
            "3月2日 10:05 至 3月3日 09:00",
        ),
    ],
)
def test_spans(first: str, last: str, with_day: bool, english_span: str, chinese_span: str) -> None:
    ends = datetime.fromisoformat(first), datetime.fromisoformat(last)
    assert Words("en").span(*ends, with_day) == english_span
    assert Words("zh").span(*ends, with_day) == chinese_span


def test_moments_have_their_year_where_there_are_several() -> None:
    time = datetime.fromisoformat("2023-07-10T11:54")
    assert Words("en", years=True).moment(time, True) == "10 July 2023 11:54"
    assert Words("zh", years=True).moment(time, True) == "2023年7月10日 11:54"


def test_a_period_within_one_minute_is_one_time() -> None:
    first, last = (datetime.fromisoformat(f"2026-03-02T11:04:0{n}") for n in (1, 9))
    assert Words("en").period(first, last) == "2 March 2026 11:04"
    assert Words("zh").period(first, last) == "2026年3月2日 11:04"


def test_shares_never_round_to_nothing() -> None:
    assert [share(v) for v in (0.0, 0.0004, 0.31, 0.313, 1.0)] == [
        "0%",
        "<0.1%",
        "31%",
        "31.3%",
        "100%",
    ]
