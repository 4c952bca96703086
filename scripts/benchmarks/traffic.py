"""Clients of a gateway, and what they saw.

Invariant: every request that was begun is in the result, with the status that its client got, or
None where it got no whole answer.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import aiohttp

TIMEOUT_SECONDS = 60.0
"""What a client waits for its answer."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as its client saw it. `at`: seconds from the start of the traffic; `seconds`:
    until it ended; `status`: None where there was no whole answer."""

    at: float
    seconds: float
    status: int | None

    @property
    def good(self) -> bool:
        """Whether it was answered."""
        return self.status == 200


@dataclass(frozen=True, slots=True)
class Client:
    """Where requests go. `body`: that of the n-th request."""

    url: str
    body: Callable[[int], bytes]
    headers: Mapping[str, str]


def at_rate(client: Client, rate: float, seconds: float, seed: int) -> list[Seen]:
    """Clients who do not wait for each other: they come by chance, `rate` a second on average."""
    chance = random.Random(seed)
    arrivals, at = [], chance.expovariate(rate)
    while at < seconds:
        arrivals.append(at)
        at += chance.expovariate(rate)
    return asyncio.run(_come(client, arrivals))


def at_once(client: Client, clients: int, seconds: float) -> list[Seen]:
    """So many clients, each asking again as soon as it is answered."""
    return asyncio.run(_insist(client, clients, seconds))


def percentile(seen: Sequence[Seen], share: float) -> float:
    """The time within which that share of the good answers was there, in seconds; 0 for none."""
    took = sorted(one.seconds for one in seen if one.good)
    return took[min(len(took) - 1, int(share * len(took)))] if took else 0.0


def error_share(seen: Sequence[Seen]) -> float:
    """The share of the requests that were not answered. Raises ZeroDivisionError for none."""
    return sum(not one.good for one in seen) / len(seen)


def good_per_second(seen: Sequence[Seen]) -> float:
    """Good answers a second, from the first arrival to the last end; 0 for none."""
    good = [one for one in seen if one.good]
    if not good:
        return 0.0
    return len(good) / (max(one.at + one.seconds for one in good) - min(one.at for one in seen))


async def _come(client: Client, arrivals: Sequence[float]) -> list[Seen]:
    async with _session() as session:
        began = time.monotonic()

        async def one(number: int, at: float) -> Seen:
            await asyncio.sleep(began + at - time.monotonic())
            return await _ask(session, client, number, began)

        return await asyncio.gather(*(one(n, at) for n, at in enumerate(arrivals)))


async def _insist(client: Client, clients: int, seconds: float) -> list[Seen]:
    seen: list[Seen] = []
    numbers = iter(range(10**9))
    async with _session() as session:
        began = time.monotonic()

        async def one() -> None:
            while time.monotonic() - began < seconds:
                seen.append(await _ask(session, client, next(numbers), began))

        await asyncio.gather(*(one() for _ in range(clients)))
    return seen


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS),
    )


async def _ask(session: aiohttp.ClientSession, client: Client, number: int, began: float) -> Seen:
    at = time.monotonic()
    status: int | None = None
    try:
        async with session.post(
            client.url, data=client.body(number), headers=client.headers
        ) as answer:
            await answer.read()
            status = answer.status
    except (aiohttp.ClientError, TimeoutError):
        status = None
    return Seen(at - began, time.monotonic() - at, status)
