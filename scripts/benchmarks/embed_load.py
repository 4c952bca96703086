"""Clients of /v1/embeddings, and the same work in one process.

Invariant: all texts of a round are sent once, and a round with an answer that is none fails.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import aiohttp
import orjson

from scripts.benchmarks.gateway_load import cpu_seconds, spent

_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of one contestant, or several as one. `texts`: a second; `took`: milliseconds of
    each request; `cpu`: milliseconds of processor time a text, of all processes that serve."""

    texts: float
    took: Sequence[float]
    cpu: float

    @property
    def cores(self) -> float:
        """Processors that were busy on average."""
        return self.texts * self.cpu / 1e3

    def within(self, share: float) -> float:
        """Milliseconds within which this share of the requests was answered."""
        ordered = sorted(self.took)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def alone(encode: Callable[[list[str]], object], requests: Sequence[Sequence[str]]) -> Round:
    """One request after the other in this process."""
    took = []
    cpu, began = time.process_time(), time.perf_counter()
    for texts in requests:
        since = time.perf_counter()
        encode(list(texts))
        took.append(time.perf_counter() - since)
    seconds = time.perf_counter() - began
    return _round(requests, seconds, took, time.process_time() - cpu)


def over_http(
    url: str, model: str, root: int, clients: int, requests: Sequence[Sequence[str]]
) -> Round:
    """So many clients at once, each asking again as soon as it is answered; `root`: the process
    whose tree serves. Raises RuntimeError for an answer that is none."""
    before = cpu_seconds(root)
    took, seconds = asyncio.run(_insist(url, model, clients, requests))
    cpu = sum(spent(before, cpu_seconds(root)).values())
    return _round(requests, seconds, took, cpu)


def together(rounds: Sequence[Round]) -> Round:
    """The medians of what a round has one of, and the requests of all: a round has too few for what
    one in a hundred takes. Raises StatisticsError for none."""
    return Round(
        float(statistics.median(one.texts for one in rounds)),
        [each for one in rounds for each in one.took],
        float(statistics.median(one.cpu for one in rounds)),
    )


async def _insist(
    url: str, model: str, clients: int, requests: Sequence[Sequence[str]]
) -> tuple[list[float], float]:
    waiting = iter(requests)
    took: list[float] = []
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session:

        async def one() -> None:
            for texts in waiting:
                given = list(texts) if len(texts) > 1 else texts[0]
                body = orjson.dumps({"model": model, "input": given, "truncate": True})
                since = time.perf_counter()
                async with session.post(
                    url, data=body, headers={"content-type": "application/json"}
                ) as answer:
                    content = await answer.read()
                took.append(time.perf_counter() - since)
                if answer.status != 200 or content.count(b'"embedding":') < len(texts):
                    raise RuntimeError(f"{url}: {answer.status} {content[:500]!r}")

        began = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(clients)))
        return took, time.perf_counter() - began


def _round(
    requests: Sequence[Sequence[str]], seconds: float, took: Sequence[float], cpu: float
) -> Round:
    texts = sum(map(len, requests))
    return Round(texts / seconds, [each * 1e3 for each in took], cpu * 1e3 / texts)
