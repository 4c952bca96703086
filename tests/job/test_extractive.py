"""The built-in analyst on labelled records of 60 unrelated trades, on hostile text, on real
files.

The labelled sets in `data/extractive_cases.jsonl` were written one after the other: the rules were
made with `tuned` in view; `held out`, `later` and `unseen` were each written before a rule was
changed for them. What they scored when first run (precision / recall of "problem", stated causes
found), English then Chinese: held out 100/100, 12 of 14 and 100/97, 11 of 12; later, in terse and
colloquial words, 95/78, 6 of 7 and 93/57, 4 of 7; unseen 100/65, 4 of 5 and 92/71, 3 of 4.
`attributed` has causes told by hearsay, by contrast and in the other side's reply: 96/92, 6 of 21
and 100/89, 9 of 21. The floors below guard what was reached since.
"""

from __future__ import annotations

import csv
import json
import re
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from job.extractive import analyse
from job.records import Kind
from tests.job.extracting import check, record
from tests.real_data import real_file

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "data/extractive_cases.jsonl")
    .read_text("utf-8")
    .splitlines()
]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    ("name", "precision", "recall", "causes"),
    [
        ("tuned", 1, 1, 1),
        ("held out", 1, 0.95, 1),
        ("later", 0.95, 0.95, 1),
        ("unseen", 1, 0.8, 0.7),
        ("attributed", 0.95, 0.88, 0.85),
    ],
)
def test_labelled_records(
    name: str, lang: str, precision: float, recall: float, causes: float
) -> None:
    counts: Counter[str] = Counter()
    for case in (c for c in CASES if c["set"] == name and c["lang"] == lang):
        one = record(case["text"], case["kind"], case.get("level"), case.get("rating"), lang)
        answer = analyse(one, "zh" if lang == "zh" else "en")
        check(one, answer)
        said, meant = answer.outcome == "problem", case["outcome"] == "problem"
        counts["both"] += said and meant
        counts["said"] += said
        counts["meant"] += meant
        counts["all"] += 1
        counts["right"] += answer.outcome == case["outcome"]
        if "cause" in case:
            counts["causes"] += 1
            counts["found"] += any(
                i.basis == "stated" and i.cause and case["cause"] in i.cause for i in answer.issues
            )
    assert counts["both"] >= precision * counts["said"]
    assert counts["both"] >= recall * counts["meant"]
    assert counts["right"] >= 0.88 * counts["all"]
    assert counts["found"] >= causes * counts["causes"]


def test_labelled_sets_are_wide() -> None:
    assert len({case["domain"] for case in CASES}) >= 60
    assert min(Counter((c["set"], c["lang"]) for c in CASES).values()) >= 30


TEXT = st.text(
    st.sampled_from("because the error, not.:=\n\"'({[失败因为导致不没了，。：·ǅİ👍0a_$ "),
    max_size=300,
)


@settings(max_examples=100)
@given(
    TEXT | st.text(max_size=300),
    st.sampled_from(("operation", "feedback", "conversation")),
    st.sampled_from((None, "error", "info")),
    st.sampled_from((None, 1.0, 5.0, 88.0)),
)
def test_any_text_has_one_sound_answer(
    text: str, kind: Kind, level: str | None, rating: float | None
) -> None:
    one = record(text, kind, level, rating)
    answer = analyse(one, "en")
    check(one, answer)
    assert answer == analyse(one, "en")


@pytest.mark.parametrize("kind", ["operation", "feedback", "conversation"])
@pytest.mark.parametrize(
    "unit",
    [
        *("a", "a.", "a_", "\n", " ", "not ", "[", 'error="', "因为", "不", "，", ": ", "失败0"),
        *("failed because ", "user: error\n", "Caused by: aError: b\n"),
    ],
)
def test_hostile_repetition_takes_linear_time(kind: Kind, unit: str) -> None:
    one = record(unit * (30_000 // len(unit)), kind, "error")
    begin = time.process_time()
    check(one, analyse(one, "en"))
    assert time.process_time() - begin < 5


# ---------------------------------------------------------------------------- real files


def _log(name: str, separator: str, at: int) -> list[str]:
    lines = real_file(name).read_text("utf-8").split("\n")
    return [line.rstrip("\r").split(separator, at)[at] for line in lines if line.strip()]


def test_hadoop_log() -> None:
    levels = {"INFO": "info", "WARN": "warning", "ERROR": "error", "FATAL": "critical"}
    events: Counter[str] = Counter()
    for line in _log("loghub/Hadoop_2k.log", " ", 2):
        level, _, text = line.partition(" ")
        one = record(text, "operation", levels[level])
        answer = analyse(one, "en")
        check(one, answer)
        events.update(re.sub(r" \d+ seconds$", "", issue.event) for issue in answer.issues)
    # The four messages of one outage: three warnings or errors, and the attempts to connect again.
    assert sum(events.values()) == 494 + 476 + 146
    assert sum(n for event, n in events.items() if "Address change detected" in event) == 476
    assert sum(n for event, n in events.items() if "Retrying connect" in event) == 146
    assert events["Failed to renew lease for"] == 326
    assert events["ERROR IN CONTACTING RM"] == 147


def test_health_app_log_is_nearly_all_normal() -> None:
    outcomes = Counter(
        analyse(record(text, "operation"), "en").outcome
        for text in _log("loghub/HealthApp_2k.log", "|", 1)
    )
    assert outcomes["problem"] <= 8


@pytest.mark.slow
def test_cloudtrail_errors_are_exactly_the_events_with_an_error_code() -> None:
    events = json.loads(real_file("cloudtrail/cloudtrail.json").read_text("utf-8"))["Records"]
    for event in events:
        flat = " ".join(
            f"{name}={value if isinstance(value, str) else json.dumps(value)}"
            for name, value in event.items()
            if value is not None
        )
        answer = analyse(record(flat, "operation"), "en")
        assert (answer.outcome == "problem") == ("errorCode" in event)


def test_reviews_agree_with_their_stars() -> None:
    rated = unrated = told = 0
    for part in ("train", "dev", "test"):
        path = real_file(f"asap/{part}_sample.csv")
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                stars = float(row["star"])
                if stars == 3:
                    continue
                wanted = "positive" if stars > 3 else "problem"
                told += 1
                text = row["reviewbody"].replace("\\n", "\n")
                rated += analyse(record(text, rating=stars), "zh").outcome == wanted
                unrated += analyse(record(text), "zh").outcome == wanted
    assert told == 256
    assert rated >= 0.95 * told
    assert unrated >= 0.87 * told


def test_chat_without_trouble_is_hardly_ever_a_problem() -> None:
    dialogues = json.loads(real_file("kdconv/travel_test.json").read_text("utf-8"))
    texts = ["\n".join(m["message"] for m in d["messages"]) for d in dialogues]
    outcomes = Counter(analyse(record(t, "conversation"), "zh").outcome for t in texts)
    assert outcomes["problem"] <= 6


def test_requests_to_a_model_are_normal() -> None:
    lines = real_file("kura/conversations.jsonl").read_text("utf-8").splitlines()
    prompts = {json.loads(line)["messages"][0]["content"] for line in lines}
    assert len(prompts) == 13
    for prompt in prompts:
        assert analyse(record(f"user: {prompt}", "conversation"), "en").outcome == "normal"
