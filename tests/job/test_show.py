"""What a person sees of a run."""

from __future__ import annotations

import io
import threading
from typing import Any

import pytest
from rich.console import Console

from job import show
from job.progress import View
from job.show import Watcher, closing_lines, progress_lines
from job.timing import Stations

HOSTILE = "\x1b]0;owned\x07 name\n2,000 read = all is well \u202egnp.exe"


def a_report(**changes: Any) -> dict[str, Any]:
    vias = ("answered", "recalled", "folded", "review", "failed", "unasked")
    numbers = ("requests", "retries", "rate_limited", "tokens_in", "tokens_out")
    ledger = dict.fromkeys((*vias, "read", "records", "rejected", "skipped"), 0)
    return {
        "run": {"stopped": None, "model": "m", "provider": "openai"},
        "period": {"first": "2026-03-14", "last": "2026-03-15"},
        "ledger": ledger | {"calls": dict.fromkeys(numbers, 0)},
        "cost": {"cost": None},
        "timing": {},
        "headline": "Nothing needs action",
        "themes": [],
        "incidents": [],
        "comparison": None,
        "known": {"file": None, "muted": {"themes": 0, "records": 0}},
    } | changes


def a_theme(**changes: Any) -> dict[str, Any]:
    return {
        "records": 2,
        "severity": "high",
        "title": "Payments time out",
        "needs_action": True,
        "status": None,
        "returned": False,
        "muted_until": None,
    } | changes


def test_the_ledger_comes_last() -> None:
    lines = closing_lines(a_report(), View(), "out/report.html")
    assert lines[0] == "2026-03-14 to 2026-03-15   model: m"
    assert "report: out/report.html" in lines
    assert lines[-2].startswith("0 read = 0 records")
    assert lines[-1].startswith("0 records = 0 answered")


def test_a_stop_and_rules_instead_of_a_model_are_said_first() -> None:
    run = {"stopped": {"reason": "quota"}, "model": "rules", "provider": "extractive"}
    lines = closing_lines(a_report(run=run), View(), "x")
    assert lines[0] == "STOPPED EARLY: quota. The report is partial."
    assert any("No language model was used" in line for line in lines)


def test_nothing_from_outside_moves_the_cursor_or_makes_a_line() -> None:
    theme = a_theme(title=HOSTILE)
    run = {"stopped": {"reason": HOSTILE}, "model": HOSTILE, "provider": "openai"}
    plain = a_report(themes=[theme | {"title": "x"}], run=run | {"stopped": {"reason": "x"}})
    lines = closing_lines(a_report(run=run, themes=[theme]), View(), HOSTILE)
    assert len(lines) == len(closing_lines(plain, View(), "x"))
    assert all(line.isprintable() or "\ufffd" in line for line in lines)
    assert not any(c in line for line in lines for c in "\x1b\x07\n\u202e")


def test_the_last_lines_tell_what_changed_what_is_muted_and_what_belongs_together() -> None:
    themes = [
        a_theme(title="Old", status="same", needs_action=False),
        a_theme(title="Quiet", muted_until="2026-04-01"),
        a_theme(title="Fresh", status="new", severity="low"),
        a_theme(title="Again", status="same", returned=True),
    ]
    counts = {"new": 1, "worse": 0, "same": 3, "better": 0, "gone": 2}
    lines = closing_lines(
        a_report(
            themes=themes,
            incidents=[{"title": "Again, and 1 more", "records": 1_095}],
            comparison={"comparable": True, "counts": counts, "runs": [{"path": "../mon"}]},
            known={"file": "known.yaml", "muted": {"themes": 1, "records": 2}},
        ),
        View(),
        "x",
    )
    assert lines[2].split() == ["records", "severity", "change", "problem"]
    assert [line.split()[2:] for line in lines[3:6]] == [
        ["new", "Fresh"],
        ["back", "Again"],
        ["same", "Old"],
    ]
    assert "likely one incident: Again, and 1 more (1,095 records)" in lines
    assert "against ../mon: 1 new, 0 worse, 3 same, 0 better, 2 gone" in lines
    assert "muted: 1 problems, by known.yaml" in lines
    other = {"comparable": False, "reason": "model"}
    assert "not compared with earlier runs: another model" in closing_lines(
        a_report(comparison=other), View(), "x"
    )


def test_the_problems_are_a_table_and_the_words_of_the_account_are_explained() -> None:
    themes = [a_theme(title=f"T{n}", needs_action=n < 6, records=1_000 + n) for n in range(8)]
    ledger = a_report()["ledger"] | {"records": 9, "answered": 7, "folded": 2}
    lines = closing_lines(a_report(themes=themes, ledger=ledger), View(), "x")
    head, first = lines[2:4]
    assert head.split() == ["records", "severity", "problem"]
    assert first.split() == ["1,000", "high", "T0"]
    assert head.index("problem") == first.index("T0")
    assert lines[8] == "  and 3 more, 2 of them without need for action"
    assert lines[-3].startswith("in the account below, folded: says the same")
    assert "rejected" not in lines[-3]


def test_progress_tells_limits_only_where_a_model_is_asked() -> None:
    assert len(progress_lines(View(records=2000), 3, None)) == 1
    view = View(limiter={"rpm": 60.0, "in_use": 1, "concurrency": 5, "breaker": "closed"})
    lines = progress_lines(view, 3, 12.4)
    assert "permits 1/5 (60/min)" in lines[2]
    assert "about 12 s left" in lines[3]


def watched(monkeypatch: pytest.MonkeyPatch) -> tuple[Watcher, io.StringIO]:
    monkeypatch.setattr(show, "PLAIN_SECONDS", 0.01)
    shown = io.StringIO()
    return Watcher(Console(file=shown), Stations(), quiet=False), shown


def test_a_board_that_cannot_be_seen_does_not_end_the_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watcher, shown = watched(monkeypatch)
    looked, again = threading.Event(), threading.Event()

    def look() -> View:
        if not looked.is_set():
            looked.set()
            raise ConnectionError("the board died")
        again.set()
        return View(records=7)

    with watcher.watching(), watcher.board(look, 3):
        assert looked.wait(60)
        assert again.wait(60)
    assert "Traceback" not in shown.getvalue()


def test_a_look_that_hangs_does_not_hold_up_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    watcher, _ = watched(monkeypatch)
    looking, released = threading.Event(), threading.Event()

    def look() -> View:
        looking.set()
        assert released.wait(60)
        return View()

    left = threading.Event()

    def leave() -> None:
        with watcher.board(look, 3):
            assert looking.wait(60)
        left.set()

    with watcher.watching():
        thread = threading.Thread(target=leave)
        thread.start()
        assert left.wait(60)
        released.set()
        thread.join()


def test_what_was_spent_is_told_while_it_goes_on_and_at_the_end() -> None:
    spend = {"spent": "0.1234", "cap": "5.00", "currency": "USD"}
    view = View(limiter={"in_use": 1, "concurrency": 5, "breaker": "closed"})
    view.facts = {"spend": spend}
    assert "spent 0.12 of 5.00 USD" in progress_lines(view, 1, None)
    view.facts = {"spend": {"spent": None, "cap": None, "currency": None}}
    assert not any("spent" in line for line in progress_lines(view, 1, None))
    cost = {"cost": 0.012345, "currency": "CNY", "max_spend": None}
    report = a_report(cost=cost | {"cost_before": 0.01, "unconfirmed": 0.0})
    told = "spent: 0.012 CNY, 0.010 of it by earlier commands"
    assert told in closing_lines(report, View(), "report.html")
