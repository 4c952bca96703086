"""The process a run belongs to, as its actors see it.

Invariant: an actor on the owner's machine knows at once that the owner is gone; Ray itself ends
the actors of a dead owner only a second or two later, time enough to pay for answers nobody waits
for. On another machine, or where the system cannot tell, the owner counts as alive.
"""

from __future__ import annotations

import os
import select
import socket
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that started a run. Plain values; `watch` is called where it is needed."""

    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)

    def watch(self) -> OwnerWatch:
        """A watch kept by the calling process."""
        return OwnerWatch(self)


class OwnerWatch:
    """Tells whether the owner still runs, from a descriptor that is signalled when it ends."""

    def __init__(self, owner: Owner) -> None:
        self._gone = False
        self._poll: select.poll | None = None
        if owner.host != socket.gethostname() or not hasattr(os, "pidfd_open"):
            return
        self._poll = select.poll()
        try:
            self._poll.register(os.pidfd_open(owner.pid), select.POLLIN)
        except ProcessLookupError:
            self._gone = True
        except OSError:
            self._poll = None

    def alive(self) -> bool:
        """False once the owner has ended, however it did."""
        if self._poll is not None and not self._gone:
            self._gone = bool(self._poll.poll(0))
        return not self._gone
