"""A budget with its journal, for callers that wait on one event loop.

Invariant: a reservation is in the journal before its caller may send; what a call counted for is
there when its settling returns. A host that begins where another ended knows what that one granted.
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Protocol

from serve.ask.contract import Usage
from serve.ask.errors import CapReached, Stopped
from serve.ask.settings import Prices
from serve.ask.spend import Budget, Call, Ended, Ratios
from serve.ask.spend_account import Row
from serve.ask.spend_journal import SpendJournal

SHORTEST_TIMER = 0.01


@dataclass(frozen=True, slots=True)
class Purse:
    """Who spends: `run` of the folder, `command` of this start of it. `cap` in the currency of
    `prices`, None: no limit; `prices` by model, those that are known."""

    run: str
    command: str
    cap: Decimal | None
    prices: Mapping[str, Prices]

    @property
    def currency(self) -> str | None:
        """Of all amounts; None where no price is known."""
        return next((prices.currency for prices in self.prices.values()), None)


def cap_words(purse: Purse) -> str:
    """Why a run stops that may spend no more."""
    return f"the cap of {purse.cap} {purse.currency} is reached"


@dataclass(frozen=True, slots=True)
class Seen:
    """`spent` so far, by calls that are over; None where prices are not known. `cap`: see
    `Purse`. `refused`: something could not be sent under it."""

    spent: Decimal | None = None
    cap: Decimal | None = None
    currency: str | None = None
    refused: bool = False

    def as_facts(self) -> dict[str, str | bool | None]:
        """The same, amounts as plain text."""
        amounts = {"spent": self.spent, "cap": self.cap}
        facts = {name: None if amount is None else str(amount) for name, amount in amounts.items()}
        return facts | {"currency": self.currency, "refused": self.refused}


class Spend(Protocol):
    """Who keeps an asker within its means, awaited."""

    async def reserve(self, ticket: str, call: Call) -> None:
        """Wait until `call` may be sent, whatever it costs. Raises CapReached where it may not,
        Stopped where no account can be kept; a reservation that is not waited for any more is
        given back."""
        ...

    async def settle(self, ticket: str, ended: Ended, usage: Usage | None = None) -> None:
        """The call is over. Once for each reservation; repeated it changes nothing. Never fails."""
        ...


class SpendHost:
    """Keeps the purse of one run. Belongs to the loop it is used on."""

    def __init__(
        self, path: Path, purse: Purse, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Go on with what the journal at `path` holds of the run: open attempts of this command are
        in flight, those of earlier ones are over and count in full."""
        self.purse = purse
        self._clock = clock
        self._journal = SpendJournal(path)
        self._waiters: dict[str, asyncio.Future[None]] = {}
        self._calls: dict[str, Call] = {}
        self._timer: asyncio.TimerHandle | None = None
        ratios, spent, in_flight = Ratios(), Decimal(0), []
        for row in self._journal.rows(purse.run):
            if row.ended is None and row.command == purse.command:
                in_flight.append(row)
                continue
            spent += row.counts(purse.prices) or 0
            if row.usage is not None:
                ratios.observe(row.call, row.usage.tokens_in)
        # The same command again makes no other call: what is small enough was asked before.
        self._told = {
            model
            for model, (cap, prices) in self._journal.refused(purse.run).items()
            if purse.cap is not None and purse.cap <= cap and prices == purse.prices.get(model)
        }
        self._budget = Budget(purse.cap, purse.prices, ratios, spent, self._told)
        for row in in_flight:
            amount = row.counts(purse.prices) or Decimal(0)
            self._budget.reopen(row.ticket, row.call, amount, clock())

    @property
    def seen(self) -> Seen:
        """How much is spent at this moment."""
        purse = self.purse
        spent = self._budget.spent if purse.prices else None
        return Seen(spent, purse.cap, purse.currency, bool(self._budget.closed))

    def close(self) -> None:
        """Close the journal."""
        if self._timer is not None:
            self._timer.cancel()
        self._journal.close()

    async def reserve(self, ticket: str, call: Call) -> None:
        """See `Spend.reserve`."""
        if self._budget.holds(ticket):
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[ticket], self._calls[ticket] = waiter, call
        self._budget.enqueue(ticket, call)
        self._step()
        try:
            await waiter
        except asyncio.CancelledError:
            await self.withdraw(ticket)
            raise
        finally:
            self._waiters.pop(ticket, None)
            self._calls.pop(ticket, None)

    async def withdraw(self, ticket: str) -> None:
        """The attempt is not made; its reservation, if it has one, was not used."""
        self._budget.withdraw(ticket)
        waiter = self._waiters.get(ticket)
        if waiter is not None and not waiter.done():
            waiter.set_exception(Stopped("the attempt was given up before it was sent"))
        if self._budget.holds(ticket):
            await self.settle(ticket, "free")
        else:
            self._step()

    async def settle(self, ticket: str, ended: Ended, usage: Usage | None = None) -> None:
        """See `Spend.settle`."""
        if not self._budget.holds(ticket):
            return
        cost = self._budget.settle(ticket, ended, usage)
        # An answer that was paid for is not lost over it: the row stays, and counts in full.
        with suppress(sqlite3.Error):
            self._journal.settle(ticket, ended, cost, usage)
        self._step()

    def _step(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        step = self._budget.step(self._clock())
        if step.granted:
            self._begin(step.granted)
        for ticket in step.refused:
            self._end(ticket, CapReached(cap_words(self.purse)))
        for model in self._budget.closed - self._told:
            self._tell(model)
        if step.wake_at < math.inf:
            delay = max(SHORTEST_TIMER, step.wake_at - self._clock())
            self._timer = asyncio.get_running_loop().call_later(delay, self._step)

    def _tell(self, model: str) -> None:
        """Write down that no call of `model` fits any more."""
        self._told.add(model)
        cap, prices = self.purse.cap, self.purse.prices.get(model)
        if cap is not None and prices is not None:
            with suppress(sqlite3.Error):
                self._journal.refuse(self.purse.run, model, cap, prices)

    def _begin(self, granted: Mapping[str, Decimal | None]) -> None:
        now, purse = time.time(), self.purse
        rows = [
            Row(
                ticket=ticket,
                command=purse.command,
                call=self._calls[ticket],
                currency=None if amount is None else purse.currency,
                reserved=amount,
                cost=None,
                usage=None,
                ended=None,
                at=now,
            )
            for ticket, amount in granted.items()
        ]
        error: Stopped | None = None
        try:
            self._journal.begin(purse.run, rows)
        except sqlite3.Error as failed:
            error = Stopped(f"what is spent cannot be written down: {failed}")
        for ticket in granted:
            if error is not None:
                self._budget.settle(ticket, "free")
            self._end(ticket, error)

    def _end(self, ticket: str, error: Exception | None) -> None:
        """A waiter that was cancelled meanwhile gives back what it got when it wakes."""
        waiter = self._waiters[ticket]
        if waiter.done():
            return
        if error is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(error)
