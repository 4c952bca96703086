"""The plan in words, and the time it foretells."""

from __future__ import annotations

import pytest

from job.commands.preview_bound import least_minutes
from job.commands.preview_found import Preview
from job.commands.preview_lines import preview_lines
from serve.ask.allowance import Allowance
from serve.ask.contract import Request
from serve.ask.limiter import Limits


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("burst", [1, 20, 60])
def test_the_bound_is_what_the_limiter_takes(share: float, burst: int) -> None:
    allowance = Allowance(Limits(rpm=60, burst=burst, share=share), 0.0)
    now = 0.0
    for _ in range(110):
        now = allowance.ready_at(0, now)
        allowance.take(1, 0, now)
    assert least_minutes(110, 60 * share, burst * share) == pytest.approx(now / 60, rel=0.03)


def test_what_is_ignored_is_told() -> None:
    assert "  2 entries ignored: hidden, no files, or written by runs" in preview_lines(
        Preview(ignored=2), show_request=False
    )


def test_a_request_is_shown_line_by_line_without_its_commands() -> None:
    request = Request("be\nbrief", "one\ntwo \x1b[2J\u202e", 10, 10, 1.0)
    file = {"source": "a\n\x07.log", "format": "text", "encoding": "utf-8", "compression": None}
    found = Preview(files=[file | {"records": 1, "rejected": 0}], first_request=request)
    lines = preview_lines(found, show_request=True)
    assert lines[-6:] == ["--- system", "be", "brief", "--- user", "one", "two \ufffd[2J\ufffd"]
    assert "  a \ufffd.log: text, utf-8; 1 records, 0 rejected" in lines
