"""A deadline: when the asking must end for the report to be there in time, and whether one more
call fits. Pure but for the clock that is handed in.

Invariant: what comes after the asking (joining, themes, names, report) has its seconds set aside
before a call is begun; no call is begun that is expected to end after that.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import orjson

from serve.ask.contract import Class

REACHED = "the deadline left no time for the rest"
"""Why a run stopped that had one."""
LEARNED = "closing"
"""Under what the store of answers keeps how long earlier runs took to close."""

CLOSING_SECONDS = 10.0
CLOSING_SECONDS_A_RECORD = 0.002
"""From the last answer to the report, without the calls that name themes: what was not asked is
written, all is joined, grouped and reported. On two cores under load 3,000 records took 16 s."""
NAMING_SECONDS = 10.0
"""Two rounds of calls that name themes, each a long answer."""
SPARE = 1.25
"""What is set aside over what is expected."""
REPORT_SHARE = 0.5
"""Of the closing: what is left of it once themes are grouped and their names are asked for."""
LEAST_NAMING_SECONDS = 2.0
"""With less time for the names they are left to code."""
KEPT = 5
"""Runs that are remembered."""
_SLOWNESS = (0.2, 20.0)
"""What a remembered run may say of the next one at most: a busy minute is no rule."""
_RECENT = 16
"""Calls of a class whose longest says what the next may take."""


def closing_seconds(records: int) -> float:
    """What closing a run of so many records takes, about."""
    return CLOSING_SECONDS + CLOSING_SECONDS_A_RECORD * records


@dataclass(frozen=True, slots=True)
class Closing:
    """How earlier runs closed, the latest last. `slowness`: their seconds over `closing_seconds`;
    `naming`: seconds in which a naming call was in flight."""

    slowness: tuple[float, ...] = ()
    naming: tuple[float, ...] = ()

    def needed(self, records: int) -> float:
        """Seconds to set aside for everything but the naming calls."""
        return SPARE * max(self.slowness, default=1.0) * closing_seconds(records)

    @property
    def naming_needed(self) -> float:
        """Seconds to set aside for the naming calls."""
        return SPARE * max(self.naming, default=NAMING_SECONDS)

    def seen(self, records: int, seconds: float, naming: float) -> Closing:
        """The same after a run that closed in `seconds`, `naming` of them in naming calls."""
        least, most = _SLOWNESS
        slowness = (seconds - naming) / closing_seconds(records)
        slownesses = (*self.slowness, min(most, max(least, slowness)))
        namings = (*self.naming, naming) if naming else self.naming
        return Closing(slownesses[-KEPT:], namings[-KEPT:])

    def encode(self) -> bytes:
        """As the store of answers keeps it."""
        return orjson.dumps({"slowness": self.slowness, "naming": self.naming})

    @classmethod
    def decode(cls, value: bytes | None) -> Closing:
        """The inverse of `encode`; nothing known where it is missing or damaged."""
        try:
            data = orjson.loads(value or b"{}")
            return cls(_numbers(data, "slowness"), _numbers(data, "naming"))
        except (orjson.JSONDecodeError, AttributeError, TypeError, ValueError):
            return cls()


def _numbers(data: Mapping[str, Sequence[float]], name: str) -> tuple[float, ...]:
    numbers = tuple(float(number) for number in data.get(name, ()))
    if not all(math.isfinite(number) and number >= 0 for number in numbers):
        raise ValueError(name)
    return numbers


@dataclass(frozen=True, slots=True)
class Deadline:
    """When the report is to be there, and what earlier runs say of the way to it."""

    at: datetime
    closing: Closing = Closing()

    def asking_ends(self, records: int) -> float:
        """When the asking must have ended (seconds since the epoch)."""
        return self.at.timestamp() - self.closing.needed(records) - self.closing.naming_needed

    def naming_seconds(self, records: int, now: float) -> float | None:
        """How long the names may be waited for from `now` on; None where there is no time."""
        left = self.at.timestamp() - now - REPORT_SHARE * self.closing.needed(records)
        return left if left >= LEAST_NAMING_SECONDS else None


@dataclass(slots=True)
class TimeLeft:
    """Whether one more call fits. `until`: when the asking must have ended (seconds since the
    epoch); None: there is no deadline."""

    until: float | None = None
    _recent: dict[Class, deque[float]] = field(default_factory=dict)

    def observe(self, cls: Class, seconds: float) -> None:
        """A call has ended."""
        self._recent.setdefault(cls, deque(maxlen=_RECENT)).append(seconds)

    def allows(self, cls: Class, guess: float, now: float) -> bool:
        """Whether a call begun `now` is expected to end in time. `guess`: what it takes by its own
        lane and tokens, where none of its class was seen yet, and where it asks again: what others
        asked again says nothing of that."""
        if self.until is None:
            return True
        seen = self._recent.get(cls, ()) if cls != "retry" else ()
        return now + max(seen, default=guess) <= self.until

    def over(self, now: float) -> bool:
        """Whether the asking must have ended."""
        return self.until is not None and now >= self.until

    def seconds(self, now: float) -> float | None:
        """Until then, not below 0; None without a deadline."""
        return None if self.until is None else max(0.0, self.until - now)
