"""Whose turn it is: weighted fair queues, first come first served within a class.

    all -- online 3
        `- batch 1 -- slow 1
                   `- quick 5 -- retry 1
                              `- fast 1

Turns are shared by these weights among the classes that wait, and the turns of a class that does
not wait go to its neighbours in the tree. So with every class waiting, online gets 3 of 4 grants,
slow 1 of 24, retry and fast 5 of 48 each; without online, slow gets 1 of 6 and the others 5 of 12
each; without retry as well, fast gets 5 of 6. On a tie the class first named goes first.

Slow calls last longer, so 1 of 6 turns would become more of the permits: while another class waits,
slow holds at most one in SLOW_SHARE of them. While none does, it may hold them all.

Invariant: over any stretch in which a class waits and may go, it gets its share of the grants, less
at most one turn at each branch above it; a class that was away has saved up nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from serve.ask.contract import Class
from serve.ask.permit import CLASSES

SLOW_SHARE = 6
"""Rounded down, but always one."""


@dataclass(slots=True)
class Ticket:
    """One who waits. `call_seconds`: the longest its call may take."""

    id: str
    cls: Class
    tokens: int
    call_seconds: float


@dataclass(slots=True, eq=False)
class _Branch:
    """A node of the tree. `turn` is its position on its parent's clock (stride scheduling)."""

    weight: int
    cls: Class | None = None
    branches: tuple[_Branch, ...] = ()
    turn: float = 0.0
    clock: float = field(default=0.0, init=False)

    def classes(self) -> Iterator[Class]:
        if self.cls is not None:
            yield self.cls
        for branch in self.branches:
            yield from branch.classes()


def _tree() -> _Branch:
    quick = _Branch(5, branches=(_Branch(1, "retry"), _Branch(1, "fast")))
    batch = _Branch(1, branches=(quick, _Branch(1, "slow")))
    return _Branch(1, branches=(_Branch(3, "online"), batch))


class Queues:
    """The waiting tickets of every class."""

    def __init__(self) -> None:
        self._root = _tree()
        self._paths = {cls: tuple(_path(self._root, cls)) for cls in CLASSES}
        self._queues: dict[Class, OrderedDict[str, Ticket]] = {c: OrderedDict() for c in CLASSES}
        self._class_of: dict[str, Class] = {}

    def __len__(self) -> int:
        return len(self._class_of)

    def waiting(self, cls: Class) -> int:
        """Tickets of `cls`."""
        return len(self._queues[cls])

    def join(self, ticket: Ticket) -> None:
        """To the end of its class's queue."""
        self._queues[ticket.cls][ticket.id] = ticket
        self._class_of[ticket.id] = ticket.cls

    def leave(self, ticket_id: str) -> Ticket | None:
        """Out of the queue, wherever it stood; None: it does not wait."""
        cls = self._class_of.pop(ticket_id, None)
        return None if cls is None else self._queues[cls].pop(ticket_id)

    def drain(self, cls: Class) -> list[Ticket]:
        """Everybody of `cls`, out of the queue."""
        return [ticket for id_ in list(self._queues[cls]) if (ticket := self.leave(id_))]

    def next(self, slow_in_use: int, permits: int) -> Ticket | None:
        """The ticket whose turn it is, left in its queue; None: nobody waits.

        `slow_in_use` of the `permits` are held by slow calls.
        """
        if not self._class_of:
            return None
        ready = {cls for cls, queue in self._queues.items() if queue}
        if len(ready) > 1 and slow_in_use >= max(1, permits // SLOW_SHARE):
            ready.discard("slow")
        if len(ready) == 1:
            (cls,) = ready
        else:
            node = self._root
            while node.cls is None:
                node = _first(node, ready)
            cls = node.cls
        return next(iter(self._queues[cls].values()))

    def serve(self, ticket: Ticket) -> None:
        """Grant the ticket that `next` has named: it leaves, and its class has had a turn."""
        self.leave(ticket.id)
        for node, branch in self._paths[ticket.cls]:
            node.clock = max(branch.turn, node.clock)
            branch.turn = node.clock + 1 / branch.weight


def _path(node: _Branch, cls: Class) -> Iterator[tuple[_Branch, _Branch]]:
    """The way from `node` to a class: each branching, and the branch taken there."""
    while node.cls is None:
        branch = next(each for each in node.branches if cls in each.classes())
        yield node, branch
        node = branch


def _first(node: _Branch, ready: set[Class]) -> _Branch:
    """The branch with the earliest turn among those where a class of `ready` waits.

    The clock stands at the turn served last: who was away starts there.
    """
    waiting = [branch for branch in node.branches if not ready.isdisjoint(branch.classes())]
    return min(waiting, key=lambda branch: max(branch.turn, node.clock))
