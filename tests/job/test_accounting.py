"""What of a command's calls and seconds is counted, and where."""

from __future__ import annotations

from typing import Any

import pytest

from job.accounting import Asked
from job.compress.calls import InstructionCalls
from job.compress.outcome import Outcome
from job.naming.calls import NamingCalls
from job.progress import Progress, View
from job.timing import Stations
from job.trial.canary import Canary, NoVerdict
from serve.ask.ask import CallCounts
from serve.ask.spend_host import Purse

PURSE = Purse("", "", None, {})
FOUND: dict[str, Any] = {
    **dict.fromkeys(("verdict", "reason", "before", "after", "position", "longest_pack"), "good"),
    **dict.fromkeys(("full_pack", "records", "sample"), 4),
    **{side: {"calls": {"requests": 2}} for side in ("first", "second", "first_again")},
}


def asked(canary: Canary | NoVerdict | None) -> Asked:
    """A command of 100 calls about records, 7 about names and 2 about instructions."""
    nobody: Any = None
    view = View(asking=Progress(answered=9, busy=5.0), calls=CallCounts(requests=100))
    naming = NamingCalls(nobody, counts=CallCounts(requests=7))
    shortening = InstructionCalls(nobody, Outcome("", "short"), CallCounts(requests=2))
    return Asked(PURSE, view, naming, shortening, canary)


def test_every_call_is_counted_once() -> None:
    assert asked(None).calls.requests == 109
    assert Asked(PURSE, View(), None, None, None).calls == CallCounts()


def test_a_canary_counts_where_its_calls_were_made() -> None:
    sent, kept = Canary(FOUND, busy=3.0), Canary(FOUND)
    assert asked(sent).by_records is None
    assert asked(kept).by_records == asked(None).by_records == asked(None).view
    stations = Stations()
    assert asked(sent).timing(stations)["calls_s"] == 8.0
    timing = asked(kept).timing(stations)
    assert (timing["calls_s"], timing["canary"]["calls"]) == (5.0, 6)
    assert "canary" not in asked(None).timing(stations)


@pytest.mark.parametrize(
    "canary", [NoVerdict("no money", False), NoVerdict("ended", True), Canary(FOUND, busy=0.0)]
)
def test_a_run_whose_canary_was_sent_recalls_what_it_has_paid_for(
    canary: Canary | NoVerdict,
) -> None:
    assert asked(canary).by_records is None
    assert asked(canary).calls == asked(None).calls
    assert asked(canary).timing(Stations())["calls_s"] == 5.0
