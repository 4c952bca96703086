"""The meter of a cluster: slices of what keys may use, by which replicas let requests go.

Invariant: what is held by replicas and what is left are together at most what a key may use; a
slice counts as used until it is told what was. A replica that is gone has used all that it held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from serve.gateway.errors import GatewayError
from serve.gateway.keys import KeyRecord
from serve.gateway.meter_host import MeterHost, Opened, uncounted
from serve.gateway.meter_journal import Began, Ended
from serve.gateway.purse import NOTHING, Purse
from serve.gateway.rates import KeyRates
from serve.gateway.slices import (
    GONE_SECONDS,
    LARGEST_SHARE,
    LATE_SECONDS,
    Ahead,
    Renewal,
    Renewed,
)


@dataclass(slots=True)
class _Slice:
    """What was answered to a letter, and what of it is taken back where it cannot be written."""

    letter: Renewal
    told: Renewed
    ahead_tokens: float


@dataclass(frozen=True, slots=True)
class _Reserved:
    """A slice's part of the rates of its key."""

    key: str
    requests: float
    tokens: float
    since: float


@dataclass(frozen=True, slots=True)
class _Heard:
    """The last letter that was heard of a share."""

    serial: int
    since: float


class SliceHost(MeterHost):
    """Counts for all keys and all replicas. See `MeterHost`."""

    def __init__(self, state: Path, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        super().__init__(state, clock, wall)
        self._slices: dict[str, _Slice] = {}
        self._reserved: dict[str, _Reserved] = {}
        self._heard: dict[str, _Heard] = {}

    def renew(self, letter: Renewal) -> Renewed:
        """Hear a letter; its answer may be sent when `write` has returned, as `told` says then.
        Raises KeyUncounted where the journal cannot be used; then it was not heard."""
        if (known := self._slices.get(letter.new)) is not None:
            return known.told
        account = self._account(letter.key)
        if account is not None:
            self._purse(account)  # opens the journal
        now = self._clock()
        self._expire(now)
        self._forget(now)
        if self._late(letter.new, now):
            return Renewed("lost")
        # A new ticket that is known without an answer was granted by a meter that is gone.
        granted = letter.new in self._open
        old = letter.new if granted else letter.old
        held = self._take_over(old)
        if old is not None and held is None:
            return Renewed("lost")
        rates = self._rates_of(letter.key, now)
        if not granted:
            self._let_go(old, now)
            rates.put_back(letter.requests_back, letter.tokens_back, now)
        if held is not None and old is not None and held.account is not None:
            purse = self._purse(held.account)
            purse.settle(old, NOTHING if granted else letter.spent)
            self._changes.append(Ended(old, held.account, purse.spent))
        closed = held is not None and held.account != account
        if letter.last:
            return Renewed("open")
        if closed and held is not None:
            account = held.account
        self._open[letter.new] = Opened(letter.key.name, 0, now, account)
        holds = None if account is None else self._purse(account)
        if holds is not None:
            holds.hold(letter.new, letter.carried)
        told = Renewed("closed") if closed else self._granted(letter, rates, holds, now)
        self._slices[letter.new] = _Slice(letter, told, told.ahead * letter.ahead.tokens)
        if account is not None and holds is not None:
            self._changes.append(Began(letter.new, account, holds.held[letter.new], self._wall()))
        return told

    def told(self, letter: Renewal) -> Renewed | None:
        """The answer to a letter as it is now."""
        known = self._slices.get(letter.new)
        return None if known is None else known.told

    def at_rest(self) -> bool:
        """Whether one that begins anew would know as much: nothing is held, every rate is full."""
        now = self._clock()
        self._expire(now)
        self._forget(now)
        if self._open or self._reserved:
            return False
        return all(rates.full(now) for rates in self._rates.values())

    def _late(self, new: str, now: float) -> bool:
        """Whether a successor of that letter was heard."""
        while self._heard:
            share, first = next(iter(self._heard.items()))
            if now - first.since < LATE_SECONDS:
                break
            del self._heard[share]
        share, _, number = new.rpartition("-")
        serial, last = int(number), self._heard.get(share)
        if last is not None and serial < last.serial:
            return True
        self._heard.pop(share, None)  # the oldest come first
        self._heard[share] = _Heard(serial, now)
        return False

    def _take_over(self, old: str | None) -> Opened | None:
        if old is None:
            return None
        if old not in self._open and self._journal is None:
            self._look_for_journal()
        self._slices.pop(old, None)
        return self._open.pop(old, None)

    def _granted(
        self, letter: Renewal, rates: KeyRates, purse: Purse | None, now: float
    ) -> Renewed:
        """Let go who waits, one by one, then grant a slice of what is left."""
        refused: list[GatewayError | None] = []
        for tokens, worst in letter.waiting:
            try:
                self._check(letter.key, purse, rates, tokens, worst, now)
            except GatewayError as error:
                refused.append(error)
                continue
            rates.take(tokens, now)
            if purse is not None and worst is not None:
                purse.hold_more(letter.new, worst)
            refused.append(None)
        requests = self._slice_of(letter.key, letter.ahead, rates, purse, now)
        if requests:
            tokens_ahead = requests * letter.ahead.tokens
            rates.reserve(requests, tokens_ahead, now)
            self._reserved[letter.new] = _Reserved(letter.key.name, requests, tokens_ahead, now)
            if purse is not None:
                purse.hold_more(letter.new, requests * letter.ahead.worst)
        return Renewed("open", tuple(refused), requests)

    @staticmethod
    def _slice_of(
        key: KeyRecord, ahead: Ahead, rates: KeyRates, purse: Purse | None, now: float
    ) -> int:
        """Requests of the slice: as wished, at most a tenth of what is left."""
        most = rates.room(ahead.tokens, 1 / LARGEST_SHARE, now)
        if purse is not None and ahead.worst > 0:
            left = (key.max_spend or NOTHING) - purse.spent - purse.reserved
            most = min(most, float(left / LARGEST_SHARE / ahead.worst))
        return int(max(0.0, min(ahead.requests, most)))

    def _let_go(self, ticket: str | None, now: float) -> None:
        """The slice of that ticket is not held any more."""
        if ticket is None or (slice_ := self._reserved.pop(ticket, None)) is None:
            return
        if (rates := self._rates.get(slice_.key)) is not None:
            rates.unreserve(slice_.requests, slice_.tokens, now)

    def _forget(self, now: float) -> None:
        """Count as used what silent replicas held of rates. The oldest come first."""
        while self._reserved:
            ticket, oldest = next(iter(self._reserved.items()))
            gone = oldest.since + GONE_SECONDS
            if now < gone:
                return
            self._let_go(ticket, gone)

    def end(self, ticket: str, tokens: int | None, cost: Decimal | None) -> None:
        """See `MeterHost.end`."""
        self._slices.pop(ticket, None)
        super().end(ticket, tokens, cost)

    def _undo(self, change: Began, error: object) -> None:
        """What was granted in a letter that cannot be written down is not; what it carries stays
        held, here and in the journal by the ticket before."""
        known = self._slices.get(change.ticket)
        if known is None:
            super()._undo(change, error)
            return
        letter, now = known.letter, self._clock()
        went = [
            one.tokens
            for one, refused in zip(letter.waiting, known.told.refused, strict=False)
            if refused is None
        ]
        rates = self._rates_of(letter.key, now)
        self._let_go(letter.new, now)
        rates.put_back(known.told.ahead + len(went), known.ahead_tokens + sum(went), now)
        purse = self._purse(change.account)
        purse.settle(letter.new, NOTHING)
        purse.hold(letter.new, letter.carried)
        self._changes.append(Began(letter.new, change.account, letter.carried, change.at))
        failed = uncounted(error)
        refusals = tuple(one or failed for one in known.told.refused)
        known.told = Renewed(known.told.state, refusals)
        known.ahead_tokens = 0.0
