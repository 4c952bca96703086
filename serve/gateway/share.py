"""What one replica holds of one key: a slice that it lets requests go by, those in flight, and the
letters that turn it over. Pure: values and a clock in, letters and answers out.

Invariant: a request goes once, by the slice or by the answer to a letter; what was used is told
with the next letter, and a letter is repeated as it was until it is answered.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice

from serve.gateway.errors import GatewayError
from serve.gateway.keys import KeyRecord
from serve.gateway.purse import NOTHING
from serve.gateway.slices import (
    SLICE_SECONDS,
    VALID_SECONDS,
    Ahead,
    Asked,
    Renewal,
    Renewed,
)

LAZY_SECONDS = 0.05
"""After which what ended is told where no slice is held and nothing that begins takes it along."""
REPEAT_SECONDS = 1.0
"""After which a letter that was not heard is sent again where nothing that begins does so."""
MARGIN = 1.25
"""A slice is larger by so much than the recent pace asks for."""
MOST_WAITING = 1_000
"""Requests that ask in one letter: about ten milliseconds of the meter's time."""
SHORTEST = 0.001
"""Seconds; a pace over less says nothing."""


@dataclass(slots=True, eq=False)
class Waiter:
    """A request that waits to be let go. `answer`: told None, or why it may not; False: it does not
    wait any more."""

    ticket: str
    tokens: int
    worst: Decimal | None
    answer: Callable[[GatewayError | None], bool]


class Share:
    """Times are seconds of one clock that never goes back."""

    def __init__(self, name: str) -> None:
        """`name`: unlike that of any other share. `closed`: whether it is only settled from now on,
        and wishes for no slice."""
        self.closed = False
        self._name = name
        self._serial = 0
        self._ticket: str | None = None
        self._in_flight: dict[str, Asked] = {}
        self._carried = NOTHING
        self._requests = 0
        self._tokens = 0.0
        self._money = NOTHING
        self._valid_until = -math.inf
        self._requests_back = self._tokens_back = 0.0
        self._spent = NOTHING
        self._changed_at: float | None = None
        self._queue: dict[str, Waiter] = {}
        self._asked: list[Waiter] = []
        self._sent: Renewal | None = None
        self._sent_at = -math.inf
        self._repeat_at: float | None = None
        self._pace = _Pace()
        self._granted = 0

    def begin(self, key: KeyRecord, ticket: str, asked: Asked, now: float) -> bool:
        """Whether the request goes at once, by the slice."""
        if self._queue or not self._fits(key, asked, now):
            return False
        self._requests -= 1
        self._tokens -= asked.tokens
        self._money -= asked.worst or NOTHING
        self._pace.count(asked)
        self._go(ticket, asked)
        return True

    def wait(self, waiter: Waiter) -> None:
        """The request is to be let go by the meter, or by the next slice."""
        self._queue[waiter.ticket] = waiter

    def leave(self, waiter: Waiter) -> None:
        """It waits no longer. What is granted to it meanwhile is given back."""
        self._queue.pop(waiter.ticket, None)

    def withdraw(self, ticket: str, now: float) -> None:
        """The request was let go and is not sent."""
        if self.end(ticket, 0, NOTHING, now):
            self._requests_back += 1

    def end(self, ticket: str, tokens: int | None, cost: Decimal | None, now: float) -> bool:
        """See `Meter.end`. False: it is not known here."""
        asked = self._in_flight.pop(ticket, None)
        if asked is None:
            return False
        worst = asked.worst or NOTHING
        counts = worst if cost is None else cost
        self._carried -= worst
        self._money += worst - counts
        self._spent += counts
        if tokens is not None:
            self._tokens_back += asked.tokens - tokens
        self._changed(now)
        return True

    def due_at(self) -> float:
        """When a letter is to be sent; infinity: there is nothing to say."""
        if self._queue:
            return -math.inf
        if self._repeat_at is not None:
            return self._repeat_at
        if self._sent is not None:
            return math.inf
        if self._granted:
            return self._sent_at + SLICE_SECONDS
        return math.inf if self._changed_at is None else self._changed_at + LAZY_SECONDS

    @property
    def unsaid(self) -> bool:
        """Whether there is something to say, be it later."""
        return self.due_at() < math.inf

    @property
    def over(self) -> bool:
        """Whether nothing is held, and nobody waits."""
        return self._ticket is None and self._sent is None and not self._queue

    def letter(self, key: KeyRecord, now: float, ending: bool = False) -> Renewal:
        """The letter to send now; the same again until it is answered. `ending`: wish for no
        slice."""
        self._repeat_at = None
        if self._sent is not None:
            return self._sent
        self._asked = list(islice(self._queue.values(), MOST_WAITING))
        for waiter in self._asked:
            del self._queue[waiter.ticket]
        waiting = tuple(Asked(one.tokens, one.worst) for one in self._asked)
        for one in waiting:
            self._pace.count(one)
        ahead = self._pace.ahead(now - self._sent_at)
        if ending or self.closed:
            ahead = Ahead()
        self._serial += 1
        self._sent = Renewal(
            key=key,
            old=self._ticket,
            new=f"{self._name}-{self._serial}",
            requests_back=self._requests_back + self._requests,
            tokens_back=self._tokens_back + self._tokens,
            spent=self._spent,
            carried=self._carried,
            waiting=waiting,
            ahead=ahead,
            last=not (self._in_flight or waiting or ahead.requests),
        )
        self._sent_at = now
        self._requests, self._tokens, self._money = 0, 0.0, NOTHING
        self._requests_back = self._tokens_back = 0.0
        self._spent = NOTHING
        self._changed_at = None
        self._granted = 0
        return self._sent

    def hear(self, key: KeyRecord, letter: Renewal, told: Renewed, now: float) -> list[Waiter]:
        """The answer to `letter`. Returns who must ask with another share,
        this one being closed."""
        if letter is not self._sent:
            return []
        self._sent = self._repeat_at = None
        asked = self._asked
        if told.state == "lost":
            self._lose()
            self._asked = []
            self._queue = {one.ticket: one for one in (*asked, *self._queue.values())}
            return []
        self._ticket = None if letter.last else letter.new
        if told.state == "closed":
            self.closed = True
            self._asked = []
            if not (self._in_flight or letter.last):
                self._changed(now)  # as below
            return asked + self._emptied()
        self._grant(letter.ahead, told.ahead)
        self._valid_until = self._sent_at + VALID_SECONDS
        for waiter, refused in zip(asked, told.refused, strict=True):
            given = Asked(waiter.tokens, waiter.worst)
            waits = waiter.answer(refused)
            if refused is None and waits:
                self._go(waiter.ticket, given)
            elif refused is None:
                self._requests_back += 1
                self._tokens_back += waiter.tokens
                self._money += waiter.worst or NOTHING
                self._changed(now)
        self._asked = []
        self._serve_queue(key, now)
        if not (self._in_flight or self._granted or letter.last):
            self._changed(now)  # nothing is held any more, which is to be told
        return []

    def unheard(self, error: GatewayError, now: float) -> None:
        """Nobody answered: who waits is told so. The letter may have been heard, and is sent again
        later; what it grants is given back."""
        self._repeat_at = now + REPEAT_SECONDS
        for waiter in self._asked + self._emptied():
            waiter.answer(error)

    def _emptied(self) -> list[Waiter]:
        """Who waited in the queue."""
        queue, self._queue = self._queue, {}
        return list(queue.values())

    def _fits(self, key: KeyRecord, asked: Asked, now: float) -> bool:
        if self._requests < 1 or now >= self._valid_until:
            return False
        if key.max_spend is not None and (asked.worst is None or asked.worst > self._money):
            return False
        return key.tpm is None or asked.tokens <= self._tokens

    def _go(self, ticket: str, asked: Asked) -> None:
        self._in_flight[ticket] = asked
        self._carried += asked.worst or NOTHING

    def _grant(self, ahead: Ahead, requests: int) -> None:
        self._granted = self._pace.granted = requests
        self._requests += requests
        self._tokens += requests * ahead.tokens
        self._money += requests * ahead.worst

    def _serve_queue(self, key: KeyRecord, now: float) -> None:
        for first in list(self._queue.values()):
            asked = Asked(first.tokens, first.worst)
            if not self._fits(key, asked, now):
                return
            del self._queue[first.ticket]
            if first.answer(None):
                self._requests -= 1
                self._tokens -= asked.tokens
                self._money -= asked.worst or NOTHING
                self._pace.count(asked)
                self._go(first.ticket, asked)

    def _lose(self) -> None:
        """What was held counts in full already."""
        self._ticket = None
        self._in_flight.clear()
        self._carried = self._spent = self._money = NOTHING
        self._requests_back = self._tokens_back = 0.0
        self._changed_at = None

    def _changed(self, now: float) -> None:
        if self._changed_at is None:
            self._changed_at = now


class _Pace:
    """How fast requests come, and what they take on average."""

    def __init__(self) -> None:
        self.granted = 0
        self._requests = self._tokens = 0
        self._worst = NOTHING

    def count(self, asked: Asked) -> None:
        """A request has come."""
        self._requests += 1
        self._tokens += asked.tokens
        self._worst += asked.worst or NOTHING

    def ahead(self, seconds: float) -> Ahead:
        """The slice to wish for, by what came in the last `seconds`: at most twice what was granted
        the last time, since those that come together say little."""
        requests, tokens, worst = self._requests, self._tokens, self._worst
        self._requests = self._tokens = 0
        self._worst = NOTHING
        if not requests:
            self.granted = 0
            return Ahead()
        wished = requests / max(seconds, SHORTEST) * SLICE_SECONDS * MARGIN
        wished = min(wished, max(1, 2 * self.granted))
        return Ahead(int(wished), tokens / requests, worst / requests)
