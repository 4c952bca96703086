"""The built-in analyst on labelled records of 60 unrelated trades, on real files, on hostile text.

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

from job.extractive import MODEL, NOTE, analyse
from job.records import Answer, Issue, Kind, Record
from tests.real_data import real_file

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "data/extractive_cases.jsonl")
    .read_text("utf-8")
    .splitlines()
]


def record(
    text: str,
    kind: Kind = "feedback",
    level: str | None = None,
    rating: float | None = None,
    lang: str = "en",
) -> Record:
    return Record("r1", "day.log", 0, None, kind, lang, text, level=level, rating=rating)


def only_issue(answer: Answer) -> Issue:
    assert len(answer.issues) == 1
    return answer.issues[0]


def check(one: Record, answer: Answer) -> None:
    """What holds for every answer."""
    for issue in answer.issues:
        assert issue.event
        assert issue.quote is None or (issue.quote in one.text and 0 < len(issue.quote) <= 200)
    if answer.outcome == "problem":
        assert 1 <= len(answer.issues) <= 3
        assert all(i.cause and i.suggestion and i.severity != "info" for i in answer.issues)
    elif answer.outcome == "positive":
        issue = only_issue(answer)
        assert (issue.cause, issue.suggestion, issue.severity) == (None, None, "info")
    else:
        assert answer.issues == ()


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


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("No errors, nothing missing, 0 failed", "normal"),
        ("The error was fixed within the hour", "normal"),
        ("The error is still not fixed", "problem"),
        ("If it fails, the job is tried again", "normal"),
        ("未发现异常，失败 0 项", "normal"),
        ("故障已修复", "normal"),
        ("故障仍未修复", "problem"),
        ("如果失败会自动重试", "normal"),
    ],
)
def test_denied_repaired_and_supposed_failures_are_none(text: str, outcome: str) -> None:
    assert analyse(record(text, "operation"), "en").outcome == outcome


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("Not bad at all", "positive"),
        ("No complaints, could not be happier", "positive"),
        ("Not great, would not recommend", "problem"),
        ("Thanks for nothing", "problem"),
        ("不错，挑不出毛病", "positive"),
        ("不好用，不推荐", "problem"),
        ("！？", "unclear"),
        ("🙂🙂", "unclear"),
    ],
)
def test_feedback_is_read_with_its_negations(text: str, outcome: str) -> None:
    assert analyse(record(text), "en").outcome == outcome


def test_praise_with_a_complaint_is_a_problem_about_the_complaint() -> None:
    answer = analyse(record("The soup was wonderful, but we waited an hour for it."), "en")
    assert answer.outcome == "problem"
    assert only_issue(answer).event == "we waited an hour for it"


def test_a_review_can_have_several_problems() -> None:
    text = (
        "The lift is broken. Staff were lovely. Also the towels are dirty, but I like the view. "
        "However, the bill was wrong."
    )
    answer = analyse(record(text), "en")
    assert [issue.event for issue in answer.issues] == [
        "The lift is broken",
        "the towels are dirty",
        "the bill was wrong",
    ]


def test_of_two_sentences_about_one_problem_the_one_that_says_why_is_taken_once() -> None:
    text = "The lift is stuck. They repaired the door, but the lift is stuck because of frost."
    issue = only_issue(analyse(record(text), "en"))
    assert (issue.event, issue.cause) == ("the lift is stuck", "frost")


def test_a_rating_decides_where_words_leave_it_open() -> None:
    text = "The blue one, from the shop in the square."
    assert analyse(record(text, rating=1), "en").outcome == "problem"
    assert analyse(record(text, rating=5), "en").outcome == "positive"
    assert analyse(record(text), "en").outcome == "normal"
    assert analyse(record("Lovely, but it broke on day two", rating=5), "en").outcome == "problem"


@pytest.mark.parametrize(
    ("text", "event", "cause"),
    [
        ("The gate is stuck because a hinge is bent", "The gate is stuck", "a hinge is bent"),
        ("Due to frost, the pump failed", "the pump failed", "frost"),
        ("A loose wire caused the fan to stop", "the fan to stop", "A loose wire"),
        ("The pump failed. The reason is that frost got in.", "The pump failed", "frost got in"),
        ("Failed to open gate 4: hinge is bent", "Failed to open gate 4", "hinge is bent"),
        ("闸门卡住，因为铰链变形", "闸门卡住", "铰链变形"),
        ("由于霜冻，水泵停转", "水泵停转", "霜冻"),
        ("线路松动导致风扇停转", "风扇停转", "线路松动"),
        ("水泵停转，原因是结霜", "水泵停转", "结霜"),
        ("闸门卡住，是铰链变形引起的", "闸门卡住", "铰链变形"),
        (
            "The gate is stuck. Apparently a hinge was bent.",
            "The gate is stuck",
            "a hinge was bent",
        ),
        ("A hinge is bent, which is why the gate failed", "the gate failed", "A hinge is bent"),
        (
            "The gate is stuck. It was not the motor, it was a hinge.",
            "The gate is stuck",
            "a hinge",
        ),
        (
            "A month since the gate failed because of frost",
            "A month since the gate failed",
            "frost",
        ),
        ("闸门卡住，据说是铰链变形", "闸门卡住", "铰链变形"),
        ("闸门卡住，不是没电，是铰链变形", "闸门卡住，不是没电", "铰链变形"),
        ("闸门卡住，屏幕提示铰链断裂", "闸门卡住", "铰链断裂"),
        ("铰链变形，所以闸门卡住。师傅说是霜冻", "铰链变形，所以闸门卡住", "霜冻"),
    ],
)
def test_a_stated_cause_is_taken_from_the_sentence(text: str, event: str, cause: str) -> None:
    issue = only_issue(analyse(record(text, "operation"), "en"))
    assert (issue.event, issue.cause, issue.basis) == (event, cause, "stated")


def test_what_only_came_before_is_an_inferred_cause() -> None:
    issue = only_issue(analyse(record("Since the move the line keeps dropping out"), "en"))
    assert issue.basis == "inferred"


def test_without_a_stated_cause_the_event_stands_for_it() -> None:
    issue = only_issue(analyse(record("The gate is stuck"), "en"))
    assert (issue.cause, issue.basis) == ("The gate is stuck", "inferred")


def test_the_innermost_exception_is_the_cause() -> None:
    text = (
        "nightly run stopped\njava.lang.RuntimeException: run aborted\n\tat a.B.c(B.java:1)\n"
        "Caused by: a.OuterException: step 2\n\tat a.B.d(B.java:2)\n"
        "Caused by: a.InnerException: shelf is empty\n\tat a.B.e(B.java:3)\n\t... 3 more"
    )
    issue = only_issue(analyse(record(text, "operation", "error"), "en"))
    assert (issue.event, issue.cause, issue.basis) == (
        "nightly run stopped",
        "shelf is empty",
        "stated",
    )


def test_of_chained_python_exceptions_the_first_is_the_cause() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'
        "KeyError: shelf was empty\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        'Traceback (most recent call last):\n  File "a.py", line 3, in g\n'
        "RunError: run aborted early"
    )
    issue = only_issue(analyse(record(text, "operation", "error"), "en"))
    assert issue.cause == "shelf was empty"


@pytest.mark.parametrize(
    ("text", "event", "cause"),
    [
        (
            "action=export errorCode=E42 errorMessage=quota reached today requestId=7",
            "export: E42",
            "quota reached today",
        ),
        (
            '{"operation": "export", "status": "failed", "reason": "quota reached"}',
            "export: failed",
            "quota reached",
        ),
        (
            '"POST /orders HTTP/1.1" 502 17',
            "POST /orders: 502 Bad Gateway",
            "POST /orders: 502 Bad Gateway",
        ),
    ],
)
def test_named_fields_and_statuses_tell_of_failures(text: str, event: str, cause: str) -> None:
    issue = only_issue(analyse(record(text, "operation"), "en"))
    assert (issue.event, issue.cause) == (event, cause)


@pytest.mark.parametrize(
    "text",
    [
        "action=export status=ok errorCode=0 error=null failures=0",
        '{"error": null, "status": 200, "isDefault": false}',
        "GET /orders 200 12ms",
        "exit code 0",
    ],
)
def test_fields_that_say_none_are_no_failure(text: str) -> None:
    assert analyse(record(text, "operation"), "en").outcome == "normal"


def test_the_level_decides_how_strong_the_words_must_be() -> None:
    for level, text, outcome in [
        ("error", "shelf 4", "problem"),
        ("warning", "shelf 4 replaced", "normal"),
        ("warning", "shelf 4 is late", "problem"),
        ("info", "shelf 4 is late", "normal"),
        ("info", "failed to move shelf 4", "problem"),
    ]:
        assert analyse(record(text, "operation", level), "en").outcome == outcome, (level, text)


def test_thread_logger_and_ids_are_no_part_of_an_event() -> None:
    text = (
        "[worker 3] a.b.Mover: Failed to move shelf_00_4711_9 for 99 seconds trace=fb7a80 pod=m-1"
    )
    issue = only_issue(analyse(record(text, "operation", "error"), "en"))
    assert issue.event == "Failed to move for 99 seconds"


def test_of_a_conversation_the_user_reports_and_the_other_side_explains() -> None:
    text = (
        "user: Hello!\nassistant: Hi, how can I help?\nuser: The chair you sent wobbles.\n"
        "assistant: I am sorry. Due to a wrong drill, one leg is too short."
    )
    issue = only_issue(analyse(record(text, "conversation"), "en"))
    assert (issue.event, issue.cause) == ("The chair you sent wobbles", "a wrong drill")
    assert issue.basis == "stated"


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        ("I am sorry. One leg is shorter than the others.", "One leg is shorter than the others"),
        ("I am sorry. I will send you another one.", None),
        ("Sorry! Could you send a picture?", None),
        ("One leg is shorter than the others.", None),
    ],
)
def test_what_is_said_after_an_apology_is_the_cause_unless_it_promises_or_asks(
    reply: str, cause: str | None
) -> None:
    text = f"user: The chair you sent wobbles and broke.\nassistant: {reply}"
    issue = only_issue(analyse(record(text, "conversation"), "en"))
    assert (issue.cause, issue.basis) == ((cause, "stated") if cause else (issue.event, "inferred"))


def test_what_someone_promised_is_no_cause() -> None:
    for text in (
        "The gate is stuck. They say that someone will come tomorrow.",
        "闸门卡住，师傅解释说明天来修。",
    ):
        assert only_issue(analyse(record(text), "en")).basis == "inferred", text


def test_a_greeting_is_no_event() -> None:
    text = "user: Olivia here. My order has been on its way for ages.\nassistant: I am very sorry."
    issue = only_issue(analyse(record(text, "conversation"), "en"))
    assert issue.event == "My order has been on its way for ages"


def test_of_the_other_side_only_an_admission_counts() -> None:
    asked = "user: List ten ways to fail an exam.\nassistant: "
    essay = "Many errors lead to failure: never study, lose your notes, and panic."
    refusal = "I'm sorry, I cannot open that file."
    assert analyse(record(asked + essay, "conversation"), "en").outcome == "normal"
    answer = analyse(record(asked + refusal, "conversation"), "en")
    assert "cannot open that file" in only_issue(answer).event


def test_severity_follows_the_harm() -> None:
    for text, level, severity in [
        ("Smoke came out and the fuse failed", None, "critical"),
        ("The service is down for all users", "error", "critical"),
        ("Failed to move shelf 4", "error", "high"),
        ("It broke again, for the third time", None, "high"),
        ("The lid is damaged", None, "medium"),
        ("The page is a bit slow", None, "low"),
        ("Failed to move shelf 4", "warning", "low"),
    ]:
        kind: Kind = "operation" if level else "feedback"
        assert only_issue(analyse(record(text, kind, level), "en")).severity == severity, text


def test_the_suggestion_is_in_the_language_of_the_report() -> None:
    one = record("Failed to open the gate: permission denied", "operation")
    english, chinese = (only_issue(analyse(one, language)) for language in ("en", "zh"))
    assert english.suggestion == (
        "Check who may do this and grant or explain what is missing: permission denied"
    )
    assert chinese.suggestion == "核对操作权限，补齐授权或说明限制：permission denied"


def test_it_says_that_no_language_model_was_used() -> None:
    assert MODEL == "extractive"
    assert "No language model" in NOTE["en"]
    assert "未使用语言模型" in NOTE["zh"]


TEXT = st.text(
    st.sampled_from("because the error, not.:=\n\"'({[失败因为导致不没了，。：·ǅİ👍0a_$ "),
    max_size=300,
)


@settings(deadline=None, max_examples=300)
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
    one = record(unit * (60_000 // len(unit)), kind, "error")
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
        if "Address change detected" in text:
            assert answer.outcome == "normal"
    assert sum(events.values()) == 494
    assert events["Failed to renew lease for"] == 326
    assert events["ERROR IN CONTACTING RM"] == 147


def test_health_app_log_is_nearly_all_normal() -> None:
    outcomes = Counter(
        analyse(record(text, "operation"), "en").outcome
        for text in _log("loghub/HealthApp_2k.log", "|", 1)
    )
    assert outcomes["problem"] <= 8


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
