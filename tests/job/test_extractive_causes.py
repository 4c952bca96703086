"""What the built-in analyst takes for the cause of an event."""

from __future__ import annotations

import pytest

from job.extractive import analyse
from tests.job.extracting import only_issue, record


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


@pytest.mark.parametrize(
    "text",
    [
        "The gate is stuck",
        "The gate is stuck, because the gate is stuck",
        "saving failed: ERR_DATA_INSERT",
        "saving failed: 4",
    ],
)
def test_without_a_stated_cause_none_is_given(text: str) -> None:
    issue = only_issue(analyse(record(text), "en"))
    assert (issue.cause, issue.basis) == (None, "inferred")
    assert issue.suggestion is not None
    assert issue.event in issue.suggestion


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
