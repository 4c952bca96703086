"""Themes for the tests of naming."""

from __future__ import annotations

from job.naming.code_names import ThemeInput, ThemeIssue
from job.records import Basis, Severity


def issue(
    event: str = "The refund is late",
    cause: str | None = "Approval queue is full",
    suggestion: str | None = "Add approvers",
    severity: Severity = "high",
    count: int = 1,
    stated: bool = True,
) -> ThemeIssue:
    basis: Basis = "stated" if stated else "inferred"
    return ThemeIssue(event, cause, basis, suggestion, severity, count)


def theme(*issues: ThemeIssue, name: str = "t-1") -> ThemeInput:
    return ThemeInput(name, issues or (issue(),))
