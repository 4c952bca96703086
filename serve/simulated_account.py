"""What the simulated provider has seen: statistics and the request log.

Invariant: every request is counted exactly once, when it ends, in the total and in its class; an
answer counts only when its last byte was handed to the operating system. All times are simulated
seconds from the first request.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal

import orjson

from serve.simulated_bill import Bill, Price
from serve.simulated_verdict import Verdict

RequestClass = Literal["analysis", "other"]
"""Whether a user message held records to be analysed, or anything else."""


@dataclass(slots=True)
class Counts:
    """Of one class of requests. `answers` are whole 200 answers; tokens,
    models and flaws are theirs alone."""

    requests: int = 0
    answers: int = 0
    disconnected: int = 0
    by_status: Counter[str] = field(default_factory=Counter)
    by_fault: Counter[str] = field(default_factory=Counter)
    by_finish_reason: Counter[str] = field(default_factory=Counter)
    by_model: Counter[str] = field(default_factory=Counter)
    by_flaw: Counter[str] = field(default_factory=Counter)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    first_answer: float | None = None
    last_answer: float | None = None

    def add(self, verdict: Verdict, status: str, delivered: bool, now: float) -> None:
        """Count one request that ended at `now`."""
        self.requests += 1
        self.by_status[status] += 1
        if verdict.fault:
            self.by_fault[verdict.fault] += 1
        if not delivered:
            self.disconnected += verdict.status is not None
            return
        if verdict.status == 200:
            self.answers += 1
            self.by_finish_reason[verdict.finish_reason or ""] += 1
            self.by_model[verdict.model] += 1
            self.by_flaw.update(verdict.flaws)
            self.prompt_tokens += verdict.prompt_tokens
            self.completion_tokens += verdict.completion_tokens
            self.cached_tokens += verdict.cached_tokens
            self.first_answer = now if self.first_answer is None else self.first_answer
            self.last_answer = now

    def as_dict(self) -> dict[str, Any]:
        """The counts as JSON has them."""
        names = [name for name in self.__slots__ if not name.startswith("by_")]
        counters = {
            "by_status": dict(self.by_status),
            "by_fault": dict(self.by_fault),
            "by_finish_reason": dict(self.by_finish_reason),
            "by_model": dict(self.by_model),
            "by_flaw": dict(self.by_flaw),
        }
        return {name: getattr(self, name) for name in names} | counters


class Account:
    """Counts requests as they come and go; writes a line of the log for each that ended."""

    def __init__(self, prices: Mapping[str, Price], *, bill_lost: bool) -> None:
        self._bill = Bill(prices)
        self._bill_lost = bill_lost
        self.log: BinaryIO | None = None
        """Where the request log goes, if anywhere."""
        self._total = Counts()
        self._classes: dict[RequestClass, Counts] = {"analysis": Counts(), "other": Counts()}
        self._good: Counter[str] = Counter()
        self._seen: set[str] = set()
        self._cut_bodies: set[bytes] = set()
        self._repeated_after_length = 0
        self._begun = 0
        self._in_flight = 0
        self._peak = 0

    def begin(self, body: bytes) -> int:
        """A request has arrived; its number among all, from 1."""
        self._begun += 1
        self._in_flight += 1
        self._peak = max(self._peak, self._in_flight)
        self._repeated_after_length += hashlib.sha256(body).digest() in self._cut_bodies
        return self._begun

    def end(
        self, number: int, body: bytes, verdict: Verdict, delivered: bool, start: float, now: float
    ) -> None:
        """The request is over: `delivered` whole, or not (the fault was a lost connection, or
        the client went away)."""
        self._in_flight -= 1
        digest = hashlib.sha256(body)
        kind: RequestClass = "analysis" if verdict.records else "other"
        status = str(verdict.status) if delivered and verdict.status else "none"
        for counts in (self._total, self._classes[kind]):
            counts.add(verdict, status, delivered, now)
        good = verdict.good if delivered else ()
        self._good.update(good)
        self._seen.update(verdict.records)
        billed = self._is_billed(verdict, delivered)
        if billed:
            self._bill.add(
                verdict.model,
                verdict.prompt_tokens,
                verdict.cached_tokens,
                verdict.completion_tokens,
            )
        if delivered and verdict.finish_reason == "length":
            self._cut_bodies.add(digest.digest())
        if self.log:
            entry = {
                "request": number,
                "at": round(start, 6),
                "seconds": round(now - start, 6),
                "class": kind,
                "status": verdict.status if delivered else None,
                "fault": verdict.fault,
                "disconnected": not delivered and verdict.status is not None,
                "finish_reason": verdict.finish_reason,
                "model": verdict.model,
                "prompt_tokens": verdict.prompt_tokens,
                "cached_tokens": verdict.cached_tokens,
                "completion_tokens": verdict.completion_tokens,
                "billed": billed,
                "body": digest.hexdigest()[:16],
                "records": verdict.records,
                "good": good,
            }
            self.log.write(orjson.dumps(entry) + b"\n")

    def _is_billed(self, verdict: Verdict, delivered: bool) -> bool:
        """Whether an answer was written, and is charged although it did not arrive."""
        return bool(verdict.model) and (delivered or self._bill_lost)

    def snapshot(self) -> dict[str, Any]:
        """Everything counted so far, as `/stats` gives it."""
        return {
            **self._total.as_dict(),
            "bill": self._bill.total(),
            "bill_by_model": self._bill.by_model(),
            "in_flight": self._in_flight,
            "peak_in_flight": self._peak,
            "repeated_after_length": self._repeated_after_length,
            "records_seen": len(self._seen),
            "good_answers": dict(self._good),
            "classes": {name: counts.as_dict() for name, counts in self._classes.items()},
        }
