"""A share of the hits asked live as well, to tell how many of them were wrong.

Invariant: the client never waits for it and never pays for it; at most MOST_AT_ONCE are under way,
what comes on top is counted and left out. A live answer that is good is kept, so that the next
equal request gets it; a question whose hit was wrong is not found again for another one.
"""

from __future__ import annotations

import asyncio
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import orjson

from serve.cache.agree import agrees
from serve.cache.caches import Hit
from serve.gateway.contract import CacheKind, CacheWish, Call, Caller, Whole
from serve.gateway.errors import GatewayError

MOST_AT_ONCE = 4
"""Live questions under way in one replica: a check may lag, clients may not."""
ALIKE = 0.5
"""How alike two answers must be to count as the same: models word one answer in many ways."""
SHORT = 200
"""Characters up to which two answers must agree as two questions must, word for word. Of longer
ones the numbers must be the same."""
GATEWAY = Caller(key="(gateway)")
"""Who is billed."""

_NUMBERS = re.compile(r"\d+(?:[.,:]\d+)*")
_LOG = logging.getLogger(__name__)


class Rechecks:
    """The checks of one replica. The counters are by kind of cache: `checked` were compared, of
    those `wrong` differed; `failed` got no live answer, `skipped` came while enough were under
    way."""

    def __init__(
        self,
        ask: Callable[[Call], Awaitable[Whole]],
        keep: Callable[[Call, Whole], Awaitable[None]],
        forget: Callable[[Hit], None],
        most: int = MOST_AT_ONCE,
    ) -> None:
        """`ask`: asks a provider, for a call that is no stream; `keep`: keeps its answer;
        `forget`: gives a hit's answer to no other question any more."""
        self._ask = ask
        self._keep = keep
        self._forget = forget
        self._most = most
        self._tasks: set[asyncio.Task[None]] = set()
        self.checked: Counter[CacheKind] = Counter()
        self.wrong: Counter[CacheKind] = Counter()
        self.failed: Counter[CacheKind] = Counter()
        self.skipped: Counter[CacheKind] = Counter()

    def start(self, call: Call, hit: Hit) -> None:
        """Check `hit`, the answer to `call`, in the background."""
        if len(self._tasks) >= self._most:
            self.skipped[hit.kind] += 1
            return
        task = asyncio.create_task(self._check(call, hit))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def idle(self) -> None:
        """Wait until none is under way."""
        await asyncio.gather(*self._tasks)

    async def aclose(self) -> None:
        """End those that are under way."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _check(self, call: Call, hit: Hit) -> None:
        try:
            answer = await self._ask(_live(call))
        except GatewayError as error:
            self.failed[hit.kind] += 1
            _LOG.info("a hit of the %s cache could not be checked: %s", hit.kind, error.message)
            return
        self.checked[hit.kind] += 1
        if not await asyncio.to_thread(same_answer, hit.body, answer.body):
            self.wrong[hit.kind] += 1
            self._forget(hit)
        await self._keep(call, answer)


def same_answer(one: bytes, other: bytes) -> bool:
    """Whether two completions say the same, as far as code can tell; calls of tools must be equal.
    In doubt they do not."""
    try:
        ours, theirs = _said(one), _said(other)
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    except RecursionError:
        return False  # JSON that is read may be too deep to be compared


def _same(one: tuple[str, Any], other: tuple[str, Any]) -> bool:
    text, calls = one
    other_text, other_calls = other
    if calls != other_calls:
        return False
    if text == other_text:
        return True
    if _likeness(text, other_text) < ALIKE:
        return False
    if max(len(text), len(other_text)) <= SHORT:
        return agrees(text, other_text)
    return set(_NUMBERS.findall(text)) == set(_NUMBERS.findall(other_text))


def _likeness(one: str, other: str) -> float:
    """How alike two texts are, 0 to 1: the share of their pairs of characters that both have
    (Dice), without case, width and punctuation."""
    ours, theirs = _pairs(one), _pairs(other)
    return 2 * len(ours & theirs) / ((len(ours) + len(theirs)) or 1)


def _pairs(text: str) -> set[str]:
    folded = unicodedata.normalize("NFKC", text).casefold()
    plain = " ".join("".join(c if c.isalnum() else " " for c in folded).split())
    return {plain[i : i + 2] for i in range(len(plain) - 1)} or {plain}


def _live(call: Call) -> Call:
    """`call` as the gateway asks it itself: whole, and past the caches."""
    left_out = ("stream", "stream_options")
    body = {name: value for name, value in call.body.items() if name not in left_out}
    caller = replace(GATEWAY, tenant=call.caller.tenant)
    return replace(
        call, body=body, stream=False, caller=caller, wish=CacheWish(), idempotency_key=None
    )


def _said(body: bytes) -> list[tuple[str, Any]]:
    """Of each choice the text, and the calls without their ids, as they stand where they are none:
    a provider may write anything there."""
    said = []
    for choice in _list(orjson.loads(body), "choices"):
        message = choice.get("message") if isinstance(choice, dict) else None
        text = message.get("content") if isinstance(message, dict) else message
        tools = [
            call.get("function") if isinstance(call, dict) else call
            for call in _list(message, "tool_calls")
        ]
        said.append((str(text or ""), tools))
    return said


def _list(of: Any, name: str) -> list[Any]:
    """What `of` has under `name`; where that is no list, it alone."""
    value = of.get(name) if isinstance(of, dict) else None
    return value if isinstance(value, list) else [] if value is None else [value]
