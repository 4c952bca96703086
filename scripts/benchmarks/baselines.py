"""What a script without fupan does: one call per record, one by one or ten at a time.

Both are measured on a part of the day and extrapolated; the second on a part that is bigger than
the burst, since only what comes after it is what the rest of the day would look like.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import orjson

from job.instructions import ANSWER_SCHEMA, system_message
from scripts.benchmarks.workload import BURST, MODEL, RPM
from scripts.days.compose import Entry

_RETRY_SECONDS = 0.5
"""The naive script sleeps this long after a 429, whatever the answer said."""
_RETRIES = 20
_SETTLE_SECONDS = 5.0
_TIMEOUT = 60.0
_MAX_OUTPUT = 400


@dataclass(frozen=True, slots=True)
class Attempt:
    """One HTTP call: when it ended (simulated seconds from the start) and its status."""

    at: float
    status: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What a way to do the day costs. `seconds`: simulated, from the first to the last call."""

    calls: float
    seconds: float
    rate_limited: float
    lost: float


def part_of(entries: Sequence[Entry], amount: int) -> list[Entry]:
    """About `amount` records evenly over the day."""
    return list(entries[:: max(1, len(entries) // amount)][:amount])


def request_body(entry: Entry) -> bytes:
    """One record as one request, with the instructions that fupan gives for a whole pack."""
    system = system_message(entry.kind, "zh", "fast", entry.time.date().isoformat())
    body: dict[str, Any] = {
        "model": MODEL,
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": orjson.dumps({"id": "1", "text": entry.text}).decode()},
        ],
        "max_tokens": _MAX_OUTPUT,
        "temperature": 0,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": ANSWER_SCHEMA, "strict": True},
        },
    }
    return orjson.dumps(body)


class Script:
    """A script that asks for each record until it has an answer or has tried often enough."""

    def __init__(self, base_url: str, scale: float) -> None:
        self._url = f"{base_url}/chat/completions"
        self._scale = scale
        self._lock = threading.Lock()
        self.attempts: list[Attempt] = []
        self.lost = 0

    def run(self, entries: Sequence[Entry], at_a_time: int) -> None:
        """Ask for every record, so many at a time."""
        self._began = time.monotonic()
        with (
            httpx.Client(timeout=_TIMEOUT) as client,
            ThreadPoolExecutor(max_workers=at_a_time) as pool,
        ):
            answered = list(pool.map(lambda entry: self._ask(client, entry), entries))
        self.lost = answered.count(False)

    def _ask(self, client: httpx.Client, entry: Entry) -> bool:
        headers = {"Content-Type": "application/json"}
        body = request_body(entry)
        for _ in range(_RETRIES + 1):
            status = client.post(self._url, content=body, headers=headers).status_code
            at = (time.monotonic() - self._began) * self._scale
            with self._lock:
                self.attempts.append(Attempt(at, status))
            if status == 200:
                return True
            time.sleep(_RETRY_SECONDS / self._scale)
        return False


def extrapolate_serial(attempts: Sequence[Attempt], records: int) -> Cost:
    """One by one: as slow as the calls or as the limit, whichever is slower."""
    answers = sum(attempt.status == 200 for attempt in attempts)
    by_calls = attempts[-1].at / answers * records
    by_limit = (records - BURST) * 60 / RPM
    share = records / answers
    return Cost(
        calls=len(attempts) * share,
        seconds=max(by_calls, by_limit),
        rate_limited=(len(attempts) - answers) * share,
        lost=0,
    )


def extrapolate_concurrent(attempts: Sequence[Attempt], lost: int, records: int) -> Cost:
    """Many at a time: the burst as measured, the rest at the pace some seconds after the first 429,
    when the calls that were then in flight are over.

    Raises ValueError where the part was too small to get there.
    """
    first = next((a.at for a in attempts if a.status == 429), None)
    if first is None or attempts[-1].at <= (settled := first + _SETTLE_SECONDS):
        raise ValueError("the part was answered within the burst; it must be bigger")
    before = [a for a in attempts if a.at < settled]
    after = [a for a in attempts if a.at >= settled]
    done = sum(a.status == 200 for a in before)
    answers = sum(a.status == 200 for a in after)
    share = (records - done) / (answers + lost)
    limited = [sum(a.status == 429 for a in part) for part in (before, after)]
    return Cost(
        calls=len(before) + len(after) * share,
        seconds=settled + (after[-1].at - settled) * share,
        rate_limited=limited[0] + limited[1] * share,
        lost=lost * share,
    )
