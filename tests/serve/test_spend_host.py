"""The account of what is spent: waited for, written down before a byte is sent, never lost."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.ask.contract import Usage
from serve.ask.errors import CapReached, Stopped
from serve.ask.settings import Prices
from serve.ask.spend import SLACK_SECONDS, Call, Ended, cost_of
from serve.ask.spend_account import Account, Row, reckon
from serve.ask.spend_host import Purse, SpendHost
from serve.ask.spend_journal import FILE, SpendJournal

PRICES = {"m": Prices(input=Decimal(2), output=Decimal(3))}
CALL = Call("m", 1000, 500, 60.0, {("operation", "a.log"): 2.0, ("operation", "b.log"): 1.0})
WORST = Decimal("0.0055")


def _purse(cap: str | None, command: str = "c1", prices: dict[str, Prices] = PRICES) -> Purse:
    return Purse("run", command, None if cap is None else Decimal(cap), prices)


def _account(path: Path, command: str = "c1") -> Account:
    with SpendJournal(path) as journal:
        return reckon(journal.rows("run"), PRICES, command)


async def test_a_reservation_is_in_the_journal_before_the_call_and_settled_after(
    tmp_path: Path,
) -> None:
    path = tmp_path / "new" / FILE
    host = SpendHost(path, _purse("1"))
    await host.reserve("a", CALL)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    account = _account(path)
    assert (account.total, account.unconfirmed) == (WORST, WORST)
    assert host.seen.spent == 0
    await host.settle("a", "answered", Usage(900, 10, 0))
    await host.settle("a", "unconfirmed")
    account = _account(path)
    assert (account.total, account.unconfirmed) == (Decimal("0.00183"), Decimal(0))
    assert account.shares == {
        ("operation", "a.log"): Decimal("0.00122"),
        ("operation", "b.log"): Decimal("0.00061"),
    }
    host.close()


async def test_who_does_not_fit_now_waits_for_those_in_flight(tmp_path: Path) -> None:
    host = SpendHost(tmp_path / FILE, _purse("0.006"))
    await host.reserve("a", CALL)
    second = asyncio.create_task(host.reserve("b", CALL))
    await asyncio.sleep(0)
    assert not second.done()
    await host.settle("a", "free")
    await second
    third = asyncio.create_task(host.reserve("c", CALL))
    await asyncio.sleep(0)
    await host.settle("b", "unconfirmed")
    with pytest.raises(CapReached, match=r"cap of 0\.006 USD"):
        await third
    host.close()


async def test_a_cap_that_was_reached_stays_reached_until_it_is_raised(tmp_path: Path) -> None:
    host = SpendHost(tmp_path / FILE, _purse("0.001"))
    with pytest.raises(CapReached):
        await host.reserve("big", CALL)
    host.close()
    again = SpendHost(tmp_path / FILE, _purse("0.001", "c2"))
    with pytest.raises(CapReached):
        await again.reserve("small", Call("m", 1, 1, 60.0))
    again.close()
    cheaper = {"m": Prices(input=Decimal("0.1"), output=Decimal(3))}
    for number, purse in enumerate((_purse("0.002"), _purse("0.001", prices=cheaper))):
        more = SpendHost(tmp_path / FILE, purse)
        await more.reserve(f"small {number}", Call("m", 1, 1, 60.0))
        more.close()


async def test_a_waiter_that_is_cancelled_reserves_nothing(tmp_path: Path) -> None:
    host = SpendHost(tmp_path / FILE, _purse("0.006"))
    await host.reserve("a", CALL)
    waiting = asyncio.create_task(host.reserve("b", CALL))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await host.settle("a", "free")
    assert host.seen.spent == 0
    # Granted and cancelled in one turn of the loop: given back.
    granted = asyncio.create_task(host.reserve("c", CALL))
    await asyncio.sleep(0)
    await host.withdraw("c")
    await asyncio.gather(granted, return_exceptions=True)
    assert host.seen.spent == 0
    host.close()


async def test_a_host_that_takes_over_knows_what_is_in_flight(tmp_path: Path) -> None:
    clock = 0.0
    first = SpendHost(tmp_path / FILE, _purse("0.012"))
    await first.reserve("a", CALL)
    await first.reserve("b", CALL)
    await first.settle("b", "answered", Usage(1000, 0, 0))
    first.close()
    second = SpendHost(tmp_path / FILE, _purse("0.012"), clock=lambda: clock)
    await second.reserve("a", CALL)  # repeated by a caller that was not answered
    assert second.seen.spent == Decimal("0.002")
    await second.settle("a", "answered", Usage(1000, 0, 0))
    assert second.seen.spent == Decimal("0.004")
    second.close()
    assert _account(tmp_path / FILE).total == Decimal("0.004")


async def test_a_caller_that_is_gone_holds_nobody_up(tmp_path: Path) -> None:
    clock = [0.0]
    host = SpendHost(tmp_path / FILE, _purse("0.006"), clock=lambda: clock[0])
    await host.reserve("gone", CALL)
    waiting = asyncio.create_task(host.reserve("next", CALL))
    await asyncio.sleep(0)
    clock[0] = 60.0 + SLACK_SECONDS
    await host.withdraw("nobody")  # any step
    with pytest.raises(CapReached):
        await waiting
    assert host.seen.spent == WORST
    host.close()


async def test_rows_without_a_price_are_reckoned_when_there_is_one(tmp_path: Path) -> None:
    host = SpendHost(tmp_path / FILE, _purse(None, prices={}))
    await host.reserve("a", CALL)
    await host.settle("a", "answered", Usage(1000, 100, 0))
    await host.reserve("b", CALL)
    assert host.seen.spent is None
    host.close()
    account = _account(tmp_path / FILE, "c2")
    assert account.total == Decimal("0.0023") + WORST
    assert account.before == account.total
    with SpendJournal(tmp_path / FILE) as journal:
        assert reckon(journal.rows("run"), {}, "c2").total is None
        assert reckon(journal.rows("another"), PRICES, "c2").total == 0


async def test_nothing_is_sent_that_cannot_be_written_down_and_no_paid_answer_is_lost(
    tmp_path: Path,
) -> None:
    host = SpendHost(tmp_path / FILE, _purse("1"))
    await host.reserve("a", CALL)
    with sqlite3.connect(tmp_path / FILE) as other:
        other.execute("DROP TABLE attempts")
    other.close()
    with pytest.raises(Stopped, match="cannot be written down"):
        await host.reserve("b", CALL)
    await host.settle("a", "answered", Usage(1000, 0, 0))
    assert host.seen.spent == Decimal("0.002")
    host.close()


_SCHEDULE = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask", "answered", "free", "unconfirmed", "restart", "kill"]),
        st.integers(1, 3000),
        st.integers(1, 1000),
    ),
    max_size=30,
)


@settings(max_examples=12)
@given(_SCHEDULE, st.integers(5, 30))
def test_whatever_dies_when_the_journal_keeps_the_bill_below_the_cap(
    tmp_path_factory: pytest.TempPathFactory, schedule: list[tuple[str, int, int]], milli: int
) -> None:
    path = tmp_path_factory.mktemp("spend") / FILE
    asyncio.run(_play(path, schedule, Decimal(milli) / 1000))


async def _play(path: Path, schedule: list[tuple[str, int, int]], cap: Decimal) -> None:
    commands, on_wire, over = 1, dict[str, Call](), Decimal(0)
    host = SpendHost(path, _purse(str(cap), "c1"))
    waiting: dict[str, asyncio.Task[None]] = {}
    calls: dict[str, Call] = {}
    for number, (what, tokens, output) in enumerate(schedule):
        ticket = f"t{number}"
        if what == "ask":
            calls[ticket] = Call("m", tokens, output, 1e6, {("operation", "a.log"): 1.0})
            waiting[ticket] = asyncio.create_task(host.reserve(ticket, calls[ticket]))
        elif what in ("restart", "kill"):
            for task in waiting.values():
                task.cancel()
            await asyncio.gather(*waiting.values(), return_exceptions=True)
            waiting.clear()
            host.close()
            if what == "kill":
                # Whoever was on the wire is gone: nobody can tell what it cost.
                commands += 1
                over += sum(map(_cost, on_wire.values()), Decimal(0))
                on_wire.clear()
            host = SpendHost(path, _purse(str(cap), f"c{commands}"))
        elif on_wire:
            ticket, call = on_wire.popitem()
            usage = Usage(call.estimate_in, call.max_output, 0) if what == "answered" else None
            await host.settle(ticket, _ENDS[what], usage)
            over += Decimal(0) if what == "free" else _cost(call)
        for _ in range(3):
            await asyncio.sleep(0)
        for ticket in [ticket for ticket, task in waiting.items() if task.done()]:
            if waiting.pop(ticket).exception() is None:
                on_wire[ticket] = calls[ticket]
        bill = over + sum(map(_cost, on_wire.values()), Decimal(0))
        assert bill <= cap
    host.close()
    for task in waiting.values():
        task.cancel()
    await asyncio.gather(*waiting.values(), return_exceptions=True)
    total = _account(path, f"c{commands}").total
    assert total is not None
    assert over <= total <= cap


def _cost(call: Call) -> Decimal:
    """What the provider bills at most: it counts as we do, and answers as long as it may."""
    return cost_of(Usage(call.estimate_in, call.max_output, 0), PRICES["m"])


_ENDS: dict[str, Ended] = {"answered": "answered", "free": "free", "unconfirmed": "unconfirmed"}


def test_old_runs_are_forgotten_whole_and_recent_ones_never(tmp_path: Path) -> None:
    day = 86_400.0
    with SpendJournal(tmp_path / FILE) as journal:
        for run, at in (("old", 1.0), ("going on", 1.0), ("going on", 70.0), ("recent", 75.0)):
            row = Row(f"{run}{at}", "c", CALL, "USD", WORST, None, None, None, at * day)
            journal.begin(run, [row])
        journal.start("begun", "c", 1.0 * day)
        assert journal.forget(60 * day, 100 * day, dry_run=True) == 1
        assert [*journal.rows("old")] != []
        assert journal.forget(60 * day, 100 * day) == 1
        assert not journal.knows("begun", "c")
        assert [*journal.rows("old")] == []
        assert len([*journal.rows("going on")]) == 2
        # Whatever is asked for, the last 30 days stay.
        assert journal.forget(100 * day, 100 * day) == 0
        assert journal.forget(100 * day, 102 * day) == 2
        assert len([*journal.rows("recent")]) == 1


_KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.serve.test_spend_host import CALL, _purse
from serve.ask.spend_host import SpendHost
async def main():
    host = SpendHost(Path(sys.argv[1]), _purse("1"))
    await host.reserve("a", CALL)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


@pytest.mark.slow
async def test_what_a_killed_process_had_reserved_counts_as_spent(tmp_path: Path) -> None:
    path = tmp_path / FILE
    command = [sys.executable, "-c", _KILLED, str(path)]
    ended = await asyncio.to_thread(
        subprocess.run, command, env={**os.environ, "PYTHONPATH": "."}, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    host = SpendHost(path, _purse("0.01", "c2"))
    assert host.seen.spent == WORST
    host.close()
    account = _account(path, "c2")
    assert (account.total, account.unconfirmed, account.before) == (WORST, WORST, WORST)
