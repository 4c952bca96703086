"""One request on its way to a provider, and how long answers usually take. No I/O.

Invariant: a provider is blamed for an answer that came too late only if it had most of the
request's time for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, Literal

from serve.ask.errors import AskError
from serve.gateway.contract import Answered, Call, Target

MOST: Final = 0.75
"""Of a request's time, so much is enough for any answer that its timeout allows for: a provider
that had it and gave none is too slow, one that had less may only have been asked too late."""
RECENT: Final = 15
"""Answers that tell what is usual."""
ENOUGH: Final = 5
"""With fewer of them nothing is known."""
MARGIN: Final = 1.1
"""On top of what three of four answers took at most."""
CUT_OFF: Final = 2.0
"""An answer that was not there in time is taken to need so many times the seconds that it had: with
less, a queue in which everybody is served too late would go on for long."""

Phase = Literal["permit", "provider", "retry"]


@dataclass(slots=True)
class Trial:
    """One request on its way. `since`, `deadline`, `asked_at`: seconds of the clock, `asked_at` of
    the last attempt; `phase`: what it waits for, `failure` what went wrong before, and `crowded`
    whether it waited for a permit in vain, for whoever has to say why it took too long."""

    call: Call
    since: float
    deadline: float
    about: Answered = field(default_factory=Answered)
    phase: Phase = "permit"
    target: Target | None = None
    failure: AskError | None = None
    breaker_open: bool = False
    crowded: bool = False
    asked_at: float = 0.0
    late: Callable[[], bool] = lambda: False

    def had_its_time(self, now: float) -> bool:
        """Whether the last attempt had so much of the request's time that the provider, and not
        what the request waited for before, is to blame where there is no answer."""
        return now - self.asked_at >= MOST * self.call.timeout


class Usual:
    """How long answers take, by kind: the model, the endpoint, whether it is a stream, the task."""

    def __init__(self) -> None:
        self._recent: dict[Hashable, deque[float]] = {}
        self._usual: dict[Hashable, float] = {}

    def note(self, call: Call, model: str, seconds: float) -> None:
        """An answer took so long: until its end, or to its first event if it is a stream, whose
        pieces are of use as they come."""
        self._note(_kind(call, model), seconds)

    def note_cut_off(self, call: Call, model: str, seconds: float) -> None:
        """There was none after so long, since it was asked for too late."""
        self._note(_kind(call, model), CUT_OFF * seconds)

    def seconds(self, call: Call, model: str) -> float:
        """What an answer to `call` needs; 0 where it is not known. Never more than a request has
        that waited for a quarter of its time: others of its kind may be much longer."""
        return min(self._usual.get(_kind(call, model), 0.0), MOST * call.timeout)

    def _note(self, kind: Hashable, seconds: float) -> None:
        recent = self._recent.setdefault(kind, deque(maxlen=RECENT))
        recent.append(seconds)
        if len(recent) >= ENOUGH:
            self._usual[kind] = MARGIN * sorted(recent)[len(recent) * 3 // 4]


def _kind(call: Call, model: str) -> Hashable:
    return model, call.endpoint, call.stream, call.task and call.task.name
