"""Many requests at once: `python -m tests.serve.crowd URL BODY MANY ANSWERED` prints what `crowd`
returns, for more of them than the process of a test can have open."""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import islice
from typing import Any

import aiohttp

Told = tuple[int, str, int]
"""What one was told who was turned away: status, code, seconds to wait."""


async def crowd(url: str, body: Any, many: int, answered: int) -> list[Told]:
    """What the first `answered` of `many` are told; the others wait until then, and leave."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as http:
        tasks = [asyncio.create_task(_ask(http, url, body)) for _ in range(many)]
        told = [await one for one in islice(asyncio.as_completed(tasks), answered)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return told


async def _ask(http: aiohttp.ClientSession, url: str, body: Any) -> Told:
    async with http.post(url, json=body) as answer:
        told = await answer.json()
        return answer.status, told["error"]["code"], int(answer.headers["retry-after"])


if __name__ == "__main__":
    where, what, count, first = sys.argv[1:]
    print(json.dumps(asyncio.run(crowd(where, json.loads(what), int(count), int(first)))))
