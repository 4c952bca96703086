"""Records for the tests of the built-in analyst, and what holds for every answer."""

from __future__ import annotations

from job.records import Answer, Issue, Kind, Record


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
        assert all(i.suggestion and i.severity != "info" for i in answer.issues)
        assert all(i.cause is None or i.cause != i.event for i in answer.issues)
    elif answer.outcome == "positive":
        issue = only_issue(answer)
        assert (issue.cause, issue.suggestion, issue.severity) == (None, None, "info")
    else:
        assert answer.issues == ()
