"""A body while it comes: what is too long is not held, what stops is not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.gateway.body import PART_BYTES, PART_SECONDS, Body, GaveWay
from serve.gateway.errors import BadRequest, BodyTooLarge
from tests.serve.virtual_loop import virtually


async def parts_of(*parts: bytes, endless: bool = False) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    while endless:
        yield b"x" * 10


async def stopping(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    await asyncio.Event().wait()


async def read(headers: Mapping[str, str], stream: AsyncIterator[bytes], limit: int) -> bytes:
    return await Body(0.0).read(headers, stream, limit, lambda _: None)


@pytest.mark.parametrize("length", ["101", "9" * 5_000])
async def test_a_body_that_says_it_is_too_long_is_not_read(length: str) -> None:
    stream = parts_of(b"x")
    with pytest.raises(BodyTooLarge):
        await read({"content-length": length}, stream, 100)
    assert await anext(stream) == b"x"


@pytest.mark.parametrize("headers", [{}, {"content-length": "5"}, {"content-length": "lies"}])
async def test_a_body_that_turns_out_too_long_is_not_held(headers: dict[str, str]) -> None:
    held: list[int] = []
    with pytest.raises(BodyTooLarge, match="100 bytes"):
        await Body(0.0).read(headers, parts_of(endless=True), 100, held.append)
    assert sum(held) == 100


@given(st.lists(st.binary(max_size=30), max_size=8))
@settings(max_examples=30, deadline=None)
def test_a_body_is_what_was_sent_however_it_came(parts: list[bytes]) -> None:
    whole = b"".join(parts)
    assert asyncio.run(read({}, parts_of(*parts), max(len(whole), 1))) == whole


@virtually
async def test_a_body_that_stops_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serve.gateway.body.PART_SECONDS", 0.01)
    with pytest.raises(BadRequest, match="too slowly") as refused:
        await read({}, stopping(b"x"), 100)
    assert refused.value.code == "body_timeout"


@virtually
async def test_a_body_may_take_longer_while_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serve.gateway.body.PART_SECONDS", 0.05)

    async def steadily() -> AsyncIterator[bytes]:
        for _ in range(4):
            await asyncio.sleep(0.02)
            yield b"x" * PART_BYTES

    assert len(await read({}, steadily(), 4 * PART_BYTES)) == 4 * PART_BYTES


async def test_a_body_that_gives_way_is_read_no_further() -> None:
    body = Body(0.0)
    reading = asyncio.create_task(body.read({}, stopping(b"x"), 100, lambda _: None))
    await asyncio.sleep(0)
    body.give_way()
    with pytest.raises(GaveWay):
        await reading
    assert body.behind(PART_SECONDS) == PART_BYTES - 1
