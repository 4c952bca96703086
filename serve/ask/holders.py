"""Who uses a shared limiter: what they wait for or hold, their limits, when they were last heard.

Invariant: a holder that is alive beats every BEAT_SECONDS while anything of it is open; one that
was silent for SILENT_SECONDS is dead, and what it had open is given up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from serve.ask.permit import Limits, strictest

BEAT_SECONDS = 3.0
SILENT_SECONDS = 15.0
"""A loop may be kept busy for a few seconds by its user; five missed beats are no accident."""
REMEMBERED_SECONDS = 600.0
"""A holder's limits hold for so long after it was last heard (DESIGN 5)."""


@dataclass(slots=True)
class _Holder:
    limits: Limits
    heard_at: float
    open: set[str] = field(default_factory=set)


class Holders:
    """Times are seconds of the host's clock."""

    def __init__(self) -> None:
        self._holders: dict[str, _Holder] = {}

    def join(self, name: str, limits: Limits, now: float) -> bool:
        """The holder is there, with these limits; whether it is new."""
        holder = self._holders.get(name)
        if holder is None:
            self._holders[name] = _Holder(limits, now)
            return True
        holder.limits, holder.heard_at = limits, now
        return False

    def knows(self, name: str) -> bool:
        """Whether the holder has joined and is not forgotten."""
        return name in self._holders

    def beat(self, name: str, now: float) -> None:
        """The holder is alive."""
        if holder := self._holders.get(name):
            holder.heard_at = now

    def begin(self, name: str, ticket_id: str) -> None:
        """The holder, which has joined, opened a ticket."""
        self._holders[name].open.add(ticket_id)

    def end(self, name: str, ticket_id: str) -> None:
        """The ticket is closed, however it went."""
        if holder := self._holders.get(name):
            holder.open.discard(ticket_id)

    def give_up(self, now: float) -> list[str]:
        """What dead holders had open, once; holders not heard for long are forgotten."""
        given_up: list[str] = []
        for holder in self._holders.values():
            if holder.open and now - holder.heard_at >= SILENT_SECONDS:
                given_up.extend(sorted(holder.open))
                holder.open.clear()
        self._holders = {
            name: holder
            for name, holder in self._holders.items()
            if now - holder.heard_at < REMEMBERED_SECONDS
        }
        return given_up

    def limits(self) -> Limits | None:
        """The strictest limits of those remembered; None: there is nobody."""
        given = [holder.limits for holder in self._holders.values()]
        return strictest(given) if given else None

    @property
    def busy(self) -> bool:
        """Whether anybody waits or holds a lease."""
        return any(holder.open for holder in self._holders.values())
