"""How the built-in analyst reads what two sides say."""

from __future__ import annotations

import pytest

from job.extractive import analyse
from tests.job.extracting import only_issue, record


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
    assert (issue.cause, issue.basis) == (cause, "stated" if cause else "inferred")


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
