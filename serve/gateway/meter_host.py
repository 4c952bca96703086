"""How much each key may ask and spend: the decisions and their journal, no waiting.

Invariant: a ticket counts once, however often it begins or ends. A request that costs money may go
only once `write` has returned after its `begin`; what the journal holds is at least what was
granted, so that a restart never counts less.
"""

from __future__ import annotations

import logging
import math
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from serve.ask.errors import Misconfigured
from serve.gateway.errors import (
    Forbidden,
    GatewayError,
    KeyRateLimited,
    KeySpent,
    KeyUncounted,
)
from serve.gateway.keys import KeyRecord
from serve.gateway.meter_journal import (
    FILE,
    Began,
    Ended,
    MeterJournal,
    condensed,
    unwritten,
)
from serve.gateway.purse import NOTHING, Account, Purse, month_of, next_month
from serve.gateway.rates import KeyRates

HELD_SECONDS = 3_600.0
"""A request that has not ended by then has lost who would end it, and counts in full."""
SHORT_WAIT_SECONDS = 1.0
"""Told to one whose money is only held by its own requests in flight: calls take seconds."""
UNWRITTEN_WAIT_SECONDS = 5.0
"""Told to one whom nobody can count at the moment; until then nobody tries to."""
_LOG = logging.getLogger(__name__)


def uncounted(error: object) -> KeyUncounted:
    """What a client of a limited key is told when nobody can count. The cause is for the log."""
    _LOG.error("requests of limited API keys are refused: %s", error)
    return _still_uncounted()


def _still_uncounted() -> KeyUncounted:
    return KeyUncounted(
        "what this API key uses cannot be counted at the moment, so that it may not ask",
        retry_after=UNWRITTEN_WAIT_SECONDS,
    )


@dataclass(frozen=True, slots=True)
class Opened:
    """A request in flight. `account`: None where its key has no limit of money."""

    key: str
    tokens: int
    began: float
    account: Account | None


class MeterHost:
    """Counts for all keys. `clock`: seconds that never go back; `wall`: since the epoch."""

    def __init__(self, state: Path, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        """The journal in the folder `state` is opened when a key first spends."""
        self._state = state
        self._clock = clock
        self._wall = wall
        self._journal: MeterJournal | None = None
        self._rates: dict[str, KeyRates] = {}
        self._purses: dict[Account, Purse] = {}
        self._open: dict[str, Opened] = {}
        self._changes: list[Began | Ended] = []
        self._try_at = clock()

    @property
    def unwritten(self) -> bool:
        """Whether there is something for `write`."""
        return bool(self._changes)

    def begin(self, key: KeyRecord, ticket: str, tokens: int, worst: Decimal | None) -> bool:
        """A request is about to be sent; True: not before `write` has returned. `tokens`: input and
        output together, as expected; `worst`: the most it may cost in the key's currency.

        Raises KeyRateLimited, KeySpent, or Forbidden where a key that may spend only so much asks
        for what nobody knows the price of, KeyUncounted where the journal cannot be used; then it
        counts for nothing.
        """
        account = self._account(key)
        # What another host granted is known once the journal is open.
        purse = None if account is None else self._purse(account)
        if ticket in self._open:
            return self.unwritten
        now = self._clock()
        self._expire(now)
        rates = self._rates_of(key, now)
        self._check(key, purse, rates, tokens, worst, now)
        rates.take(tokens, now)
        self._open[ticket] = Opened(key.name, tokens, now, account)
        if account is None or purse is None or worst is None:
            return False
        purse.hold(ticket, worst)
        self._changes.append(Began(ticket, account, worst, self._wall()))
        return True

    def end(self, ticket: str, tokens: int | None, cost: Decimal | None) -> None:
        """The request is over. None: nobody knows; it counts as expected, and for its worst."""
        if ticket not in self._open and self._journal is None:
            self._look_for_journal()
        held = self._open.pop(ticket, None)
        if held is None:
            return
        if tokens is not None and (rates := self._rates.get(held.key)) is not None:
            rates.settle(held.tokens, tokens, self._clock())
        if held.account is not None:
            purse = self._purse(held.account)
            purse.settle(ticket, cost)
            self._changes.append(Ended(ticket, held.account, purse.spent))

    def withdraw(self, ticket: str) -> None:
        """The request is not sent after all, and counts for nothing."""
        if ticket not in self._open and self._journal is None:
            self._look_for_journal()
        held = self._open.get(ticket)
        if held is None:
            return
        if (rates := self._rates.get(held.key)) is not None:
            rates.give_back(held.tokens, self._clock())
        self.end(ticket, None, NOTHING)

    def write(self) -> GatewayError | None:
        """Write down what has changed. Where that fails, what began since the last time is
        withdrawn, and the error is what its callers are told."""
        changes, self._changes = self._changes, []
        if not changes or self._journal is None:
            return None
        try:
            self._journal.write(changes)
        except sqlite3.Error as error:
            for one in changes:
                if isinstance(one, Ended):
                    self._changes.append(one)
                else:
                    self._undo(one, error)
            self._changes = condensed(self._changes, unwritten(changes))
            return uncounted(error)
        return None

    def _undo(self, change: Began, error: object) -> None:
        """What began cannot be written down."""
        self.withdraw(change.ticket)

    def close(self) -> None:
        """Write down what has changed, and close the journal."""
        self.write()
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _check(
        self,
        key: KeyRecord,
        purse: Purse | None,
        rates: KeyRates,
        tokens: int,
        worst: Decimal | None,
        now: float,
    ) -> None:
        """Raise where a request may not go."""
        if purse is not None:
            self._check_money(key, purse, worst)
        if (wait := rates.wait(tokens, now)) is not None:
            which, seconds = wait
            raise KeyRateLimited(
                f"this API key may use {rates.limit(which):,.10g} {which} per minute; try again in "
                f"{math.ceil(seconds)} s",
                retry_after=seconds,
            )

    def _check_money(self, key: KeyRecord, purse: Purse, worst: Decimal | None) -> None:
        """Raise where a request that may cost `worst` may not go."""
        limit, currency = key.max_spend or NOTHING, key.currency
        if worst is None:
            raise Forbidden(
                f"this API key may spend {limit:f} {currency} a month, and what this model costs "
                f"in {currency} is not known; ask another model",
                code="price_unknown",
                param="model",
            )
        if purse.fits(worst, limit):
            return
        left = max(purse.left(limit), NOTHING)
        if worst <= left:
            raise KeyRateLimited(
                "what this API key may still spend is held by its requests in flight; try again "
                "when one has ended",
                code="key_money_held",
                retry_after=SHORT_WAIT_SECONDS,
            )
        now = self._wall()
        raise KeySpent(
            f"this API key may spend {limit:f} {currency} a month (UTC), {left:f} of it is left, "
            f"and this request may cost up to {worst:f}; ask for less (max_tokens), or next month",
            retry_after=next_month(now) - now,
        )

    def _account(self, key: KeyRecord) -> Account | None:
        if key.max_spend is None:
            return None
        return Account(key.name, month_of(self._wall()), key.currency)

    def _purse(self, account: Account) -> Purse:
        if self._journal is None:
            self._open_journal()
        return self._purses.setdefault(account, Purse())

    def _look_for_journal(self) -> None:
        """Somebody else may have begun what ends here."""
        if (self._state / FILE).exists():
            with suppress(KeyUncounted):
                self._open_journal()

    def _open_journal(self) -> None:
        """Go on where another one ended: its requests in flight may end yet."""
        now = self._clock()
        if now < self._try_at:
            raise _still_uncounted()  # the log says why
        try:
            self._journal = self._replayed(MeterJournal(self._state), now)
        except Misconfigured as error:
            self._try_at = now + UNWRITTEN_WAIT_SECONDS
            raise uncounted(error) from error

    def _replayed(self, journal: MeterJournal, now: float) -> MeterJournal:
        try:
            purses = {account: Purse(spent) for account, spent in journal.accounts()}
            held = list(journal.held())
        except Misconfigured:
            journal.close()
            raise
        self._purses = purses
        wall = self._wall()
        before: dict[str, Opened] = {}
        for ticket, account, worst, at in held:
            purses.setdefault(account, Purse()).hold(ticket, worst)
            before[ticket] = Opened(account.key, 0, now - max(0.0, wall - at), account)
        self._open = before | self._open  # the oldest come first
        return journal

    def _rates_of(self, key: KeyRecord, now: float) -> KeyRates:
        rates = self._rates.get(key.name)
        if rates is None:
            rates = self._rates[key.name] = KeyRates(key.rpm, key.tpm, now)
        else:
            rates.adjust(key.rpm, key.tpm, now)
        return rates

    def _expire(self, now: float) -> None:
        """End what is held for too long. The oldest come first."""
        while self._open:
            ticket, oldest = next(iter(self._open.items()))
            if now - oldest.began < HELD_SECONDS:
                return
            self.end(ticket, None, None)
