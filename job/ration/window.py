"""The records that wait in a run that may not get round to all of them. Pure.

Invariant: no record is handed out while a more important class waits, in either lane; a pack holds
one class, and its records are in time order as in any other pack. A rank takes a run of the
built-in analyst (2 ms a line of a log): it comes with the record, or is worked out once.
"""

from __future__ import annotations

from job.pack.packing import Fit, Group, Item, Window, by_time
from job.ration.importance import Importance, class_of, rank_of
from job.records import Lane


def rank_in(item: Item) -> int:
    """Where the record of `item` stands among all, the smallest first."""
    if item.rank is None:
        item.rank = rank_of(item.record)
    return item.rank


class RationedWindow:
    """A `Window` for each class, of which only that of the most important records is open."""

    def __init__(self, fit: Fit) -> None:
        self._windows = {each: Window(fit, rank_in) for each in Importance}

    def __len__(self) -> int:
        return sum(map(len, self._windows.values()))

    def push(self, item: Item, last: bool = False) -> None:
        """See `Window.push`."""
        self._windows[class_of(rank_in(item))].push(item, last)

    def waiting(self, lane: Lane) -> int:
        """See `Window.waiting`."""
        return sum(window.waiting(lane) for window in self._windows.values())

    def count(self, group: Group) -> int:
        """See `Window.count`; of the class that is open."""
        return self._open().count(group)

    def tokens(self, group: Group) -> int:
        """See `Window.tokens`; of the class that is open."""
        return self._open().tokens(group)

    def choose(self, lane: Lane) -> tuple[Group | None, bool]:
        """See `Window.choose`. A pack counts as full, too, where less important records wait: they
        come in the order of importance, so it will not grow."""
        window = self._open()
        group, full = window.choose(lane)
        return group, full or (group is not None and len(window) < len(self))

    def take(self, group: Group) -> list[Item]:
        """See `Window.take`."""
        return sorted(self._open().take(group), key=lambda item: by_time(item.record))

    def drain(self) -> list[Item]:
        """See `Window.drain`."""
        return [item for window in self._windows.values() for item in window.drain()]

    def _open(self) -> Window:
        """That of the most important class of which a record waits."""
        windows = list(self._windows.values())
        return next((window for window in windows if len(window)), windows[-1])
