"""What the limiter takes and gives: plain values, safe to pickle, no clock and no I/O.

Invariant: every Lease is settled by exactly one Outcome, or expires.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from serve.ask.contract import Class

CLASSES: tuple[Class, ...] = ("online", "retry", "fast", "slow")
"""Every class, in the order in which ties between them are broken."""

CALL_SECONDS = 120.0
"""The longest timeout of a call (DESIGN 4: 60 s, slow packs twice that)."""

FAILED_STATUSES = (200, 500, 502)
"""Failures that are no sign of too many calls at once: an error inside, garbage for an answer."""

OutcomeKind = Literal["ok", "rate_limited", "unavailable", "timed_out", "rejected", "unsent"]
"""How a call ended.

ok: a completion. rate_limited: a 429. unavailable: a 5xx, a lost or refused connection. timed_out:
no answer in time. rejected: another 4xx; it cost a request and says nothing of the provider's
health. unsent: the permit was not used, nothing was sent.
"""

BreakerState = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the provider allows. `rpm`, `tpm`: requests and tokens a minute, None: not known.

    `burst`: requests its bucket holds (None: a minute's worth). `max_concurrency`: calls in flight
    at most. `share` of rpm, tpm and burst is ours: below 1 when others use the same key.
    Raises ValueError for a limit that would let nothing through.
    """

    rpm: float | None = None
    tpm: float | None = None
    burst: float | None = None
    max_concurrency: int = 20
    share: float = 1.0

    def __post_init__(self) -> None:
        for name in ("rpm", "tpm", "burst", "max_concurrency"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be above 0, not {value}")
        if not 0 < self.share <= 1:
            raise ValueError(f"share must be above 0 and at most 1, not {self.share}")


def strictest(limits: Iterable[Limits]) -> Limits:
    """The lowest value of each field among `limits` (at least one); None is no limit."""
    given = list(limits)
    # A user who leaves `burst` open means a minute's worth of their own rpm.
    bursts = [one.burst or one.rpm for one in given]
    return Limits(
        rpm=_lowest(one.rpm for one in given),
        tpm=_lowest(one.tpm for one in given),
        burst=_lowest(bursts),
        max_concurrency=min(one.max_concurrency for one in given),
        share=min(one.share for one in given),
    )


def _lowest(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


@dataclass(frozen=True, slots=True)
class Lease:
    """A permit to send one request. `tokens` are reserved for it, input and output together.

    Times are seconds of the limiter's clock: they mean nothing in another process.
    """

    id: str
    cls: Class
    tokens: int
    granted_at: float
    expires_at: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the call under a lease ended.

    `tokens`: input and output as the provider counted them, None: it did not say. `retry_after`:
    seconds it asked to wait. `headers`: of its answer, names in lower case. `status`: HTTP status
    of its answer, None: there was none.
    """

    kind: OutcomeKind
    tokens: int | None = None
    retry_after: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)
    status: int | None = None

    @property
    def overloaded(self) -> bool:
        """Whether fewer calls at once might have helped: a 503, no answer in time, a lost or
        refused connection."""
        if self.kind == "unavailable":
            return self.status not in FAILED_STATUSES
        return self.kind == "timed_out"


@dataclass(frozen=True, slots=True)
class Settled:
    """What a holder learns when it settles.

    `breaker_open`: the breaker is open, or opened while the call was in flight. A failure then says
    nothing about the request and uses no attempt.
    """

    breaker_open: bool


@dataclass(frozen=True, slots=True)
class LimiterStats:
    """The limiter at one moment. Counters only grow: take differences.

    `rpm`: requests a minute granted at most now, None: no limit. `rpm_found`: the part of it that
    was found out from 429s, None: the provider has agreed with the limits so far. `at_once`:
    requests that may be sent in a burst now. `tpm`, `tokens_at_once`: the same of tokens. `paused`
    and `next_in`: seconds until grants go on after a Retry-After, and until the next may be made
    (None: nobody waits, or a permit has to come back first). `retries`: retry tokens handed out.
    `expired`: leases whose holder never settled.
    """

    in_use: int
    peak: int
    waiting: Mapping[Class, int]
    concurrency: int
    rpm: float | None
    rpm_found: float | None
    at_once: float | None
    tpm: float | None
    tokens_at_once: float | None
    granted: int
    rate_limited: int
    retries: int
    expired: int
    breaker: BreakerState
    paused: float
    next_in: float | None
