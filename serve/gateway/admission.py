"""What one replica takes at most: requests in flight, requests that wait, and bytes of bodies.

    with admission.visit() as visit:                  # refused at once when full or about to end
        body = await visit.read(headers, stream)      # refused when too long or too slow, or full
        async with admission.turn() as queued:        # in the order of arrival
            ...

Only requests to models take a turn: what answers by itself (/healthz, /v1/models, /metrics) never
waits behind a slow model.

Those whose bodies are still coming are counted on their own. They may be as many as the others; one
more takes the place of the one that lags furthest behind, so that slow ones keep nobody out.

Invariant: never more than `in_flight` turns at once, `in_flight` + `waiting` visits whose bodies
are here, as many whose bodies are not, and BODIES bodies of the full length; turns are given in the
order in which they were asked for, and one who stops waiting leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterable, Callable, Mapping
from types import TracebackType
from typing import Self

from serve.gateway.body import Body, GaveWay
from serve.gateway.errors import Draining, Overloaded
from serve.gateway.settings import AdmissionSettings

BODIES = 16
"""Bodies of the full length that may be held at once; ordinary ones have a thousandth of it."""
LEAST_WAIT, MOST_WAIT = 1.0, 60.0
"""Seconds that one who is turned away is told to wait."""
RECENT = 64
"""Turns that the pace is reckoned by."""
DRAINING_SECONDS = 1.0
"""After which another replica answers."""


def most_visits(settings: AdmissionSettings) -> int:
    """Requests that are here at once at most, those whose bodies are still coming among them."""
    return 2 * (settings.in_flight + settings.waiting)


class Pace:
    """How fast turns end, by the last RECENT of them. Pure; times are seconds."""

    def __init__(self) -> None:
        self._ended: deque[float] = deque(maxlen=RECENT)

    def ended(self, now: float) -> None:
        """A turn ended."""
        self._ended.append(now)

    def seconds_for(self, turns: int, now: float) -> float:
        """About how long `turns` more take, between LEAST_WAIT and MOST_WAIT; a stop since the last
        one counts."""
        if len(self._ended) < 2:
            return LEAST_WAIT
        each = (now - self._ended[0]) / (len(self._ended) - 1)
        return min(max(each * turns, LEAST_WAIT), MOST_WAIT)


class Visit:
    """One request from its arrival to the last byte of its answer. Ends once, however often it is
    told to."""

    __slots__ = ("_admission", "_body", "_bytes", "_inside", "_open")

    def __init__(self, admission: Admission, body: Body) -> None:
        self._admission = admission
        self._body = body
        self._bytes = 0
        self._inside = False
        self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    async def read(self, headers: Mapping[str, str], stream: AsyncIterable[bytes]) -> bytes:
        """The body, which counts as held until the visit ends. Raises BodyTooLarge, BadRequest
        where it comes too slowly, Overloaded where too much is held or as many are here as may
        be."""
        door = self._admission
        try:
            body = await self._body.read(headers, stream, door.body_bytes, self._hold)
        except GaveWay:
            raise door.full() from None
        door.come_in(self._body)
        self._inside = True
        return body

    def end(self) -> None:
        """The answer is sent, or will never be."""
        if self._open:
            self._open = False
            self._admission.leave(self._body, self._inside, self._bytes)

    def _hold(self, size: int) -> None:
        self._admission.hold(size)
        self._bytes += size


class Turn:
    """One turn at the models, as a context that gives the seconds it was waited for; or by `begin`
    and `end` where the answer outlives the block. Ends once, however often it is told to."""

    __slots__ = ("_admission", "_held")

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._held = False

    async def __aenter__(self) -> float:
        return await self.begin()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    async def begin(self) -> float:
        """Wait for it; the seconds that took. Raises Overloaded where too many wait."""
        if self.begin_now():
            return 0.0
        queued = await self._admission.acquire()
        self._held = True
        return queued

    def begin_now(self) -> bool:
        """Take it if there is one; False: it has to be waited for."""
        self._held = self._admission.acquire_now()
        return self._held

    def end(self) -> None:
        """Nothing is asked any more."""
        if self._held:
            self._held = False
            self._admission.release()


class Admission:
    """Whom one replica lets in. Belongs to the loop it is used on."""

    def __init__(
        self, settings: AdmissionSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.body_bytes = settings.body_bytes
        self._in_flight_most = settings.in_flight
        self._waiting_most = settings.waiting
        self._visits_most = settings.in_flight + settings.waiting
        self._clock = clock
        self._pace = Pace()
        self._inside = 0
        self._coming: dict[Body, None] = {}
        self._bytes = 0
        self._in_flight = 0
        self._waiting: OrderedDict[asyncio.Future[None], None] = OrderedDict()
        self._draining = False

    @property
    def in_flight(self) -> int:
        """Turns that are taken."""
        return self._in_flight

    @property
    def waiting(self) -> int:
        """Requests that wait for a turn."""
        return len(self._waiting)

    @property
    def draining(self) -> bool:
        """Whether nobody is let in any more."""
        return self._draining

    def visit(self) -> Visit:
        """A request arrives, its body still to come. Raises Draining, and Overloaded where as many
        are here as may be."""
        if self._draining:
            raise Draining(
                "this replica is about to end; the next request goes to another one",
                retry_after=DRAINING_SECONDS,
            )
        if self._inside >= self._visits_most:
            raise self.full()
        now = self._clock()
        if len(self._coming) >= self._visits_most:
            slowest = max(self._coming, key=lambda body: body.behind(now))
            del self._coming[slowest]
            slowest.give_way()
        body = Body(now)
        self._coming[body] = None
        return Visit(self, body)

    def come_in(self, body: Body) -> None:
        """A body is here. Raises Overloaded where as many are here as may be."""
        if self._inside >= self._visits_most:
            raise self.full()
        self._coming.pop(body, None)
        self._inside += 1

    def turn(self) -> Turn:
        """A turn at the models, not waited for yet."""
        return Turn(self)

    def drain(self) -> None:
        """Let nobody in any more; who is here is served."""
        self._draining = True

    def leave(self, body: Body, inside: bool, size: int) -> None:
        """A visit that held `size` bytes ends; `inside`: it had come in."""
        if inside:
            self._inside -= 1
        else:
            self._coming.pop(body, None)
        self._bytes -= size

    def hold(self, size: int) -> None:
        """A visit holds `size` bytes more. Raises Overloaded where too many are held."""
        if self._bytes + size > BODIES * self.body_bytes:
            raise self.full()
        self._bytes += size

    def acquire_now(self) -> bool:
        """See `Turn.begin_now`."""
        if self._in_flight >= self._in_flight_most:
            return False
        # Nobody waits then: a turn that ends is handed on.
        self._in_flight += 1
        return True

    async def acquire(self) -> float:
        """Wait for a turn; see `Turn.begin`."""
        if len(self._waiting) >= self._waiting_most:
            raise self.full()
        since = self._clock()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = None
        try:
            await waiter
        except asyncio.CancelledError:
            self._waiting.pop(waiter, None)
            if waiter.done() and not waiter.cancelled():
                self._hand_on()
            raise
        return self._clock() - since

    def release(self) -> None:
        """A turn ends: it is the next one's."""
        self._pace.ended(self._clock())
        self._hand_on()

    def _hand_on(self) -> None:
        while self._waiting:
            waiter, _ = self._waiting.popitem(last=False)
            if not waiter.done():
                waiter.set_result(None)
                return
        self._in_flight -= 1

    def full(self) -> Overloaded:
        """That nobody is let in any more, and for how long."""
        seconds = self._pace.seconds_for(len(self._waiting) + 1, self._clock())
        return Overloaded(
            "more requests are waiting here than this gateway takes; try again later",
            retry_after=seconds,
        )
