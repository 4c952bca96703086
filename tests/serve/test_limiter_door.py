"""Who may write letters to the limiter of a cluster, and what comes of those who may not, or write
something else."""

from __future__ import annotations

import asyncio

import msgpack
import pytest

from serve.ask import limiter_door, limiter_line
from serve.ask.limiter_letters import Caller
from serve.ask.limiter_line import MOST_BYTES, Address
from serve.ask.limiter_server import LimiterActor
from serve.ask.permit import Limits

HOST = "127.0.0.1"
HELLO = msgpack.packb(Caller("somebody", Limits(), 0, 0).plain())
LETTER = msgpack.packb(((), (), (), True))

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
async def actor() -> LimiterActor:
    return LimiterActor(Limits(), host=HOST)


async def knock(actor: LimiterActor, *said: bytes) -> Connection:
    """Connect and send all that."""
    address = await actor.address()
    reader, writer = await asyncio.open_connection(address.host, address.port)
    for part in said:
        writer.write(part)
    return reader, writer


async def closed(connection: Connection) -> bytes:
    """What came until the other end closed it."""
    try:
        return await asyncio.wait_for(connection[0].read(), 5)
    except ConnectionResetError:
        return b""


async def granted(connection: Connection) -> int:
    """Wait for a reply to LETTER."""
    value = msgpack.unpackb(await asyncio.wait_for(connection[0].read(2**16), 5))
    return int(value[2]["granted"])


async def test_who_shows_the_token_is_answered_in_whatever_pieces_it_comes(
    actor: LimiterActor,
) -> None:
    token = (await actor.address()).token
    assert await granted(await knock(actor, token + HELLO + LETTER)) == 0
    reader, writer = await knock(actor)
    for byte in token + HELLO + LETTER:
        writer.write(bytes([byte]))
        await writer.drain()
    assert await granted((reader, writer)) == 0


async def test_who_shows_another_token_is_turned_away_at_once_and_told_nothing(
    actor: LimiterActor, caplog: pytest.LogCaptureFixture
) -> None:
    token = (await actor.address()).token
    wrong = token[:-1] + bytes([token[-1] ^ 1])
    for said in (wrong + HELLO + LETTER, b"GET / HTTP/1.1\r\nHost: limiter\r\n\r\n"):
        assert await closed(await knock(actor, said)) == b""
    assert "without the token" in caplog.text
    for secret in (token, wrong):
        assert str(secret) not in caplog.text
        assert secret.hex() not in caplog.text


async def test_who_shows_nothing_does_not_stay(
    actor: LimiterActor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiter_door, "SHOW_SECONDS", 0.5)
    token = (await actor.address()).token
    for said in (b"", token[:-1]):
        assert await closed(await knock(actor, said)) == b""
    connection = await knock(actor, token + HELLO)
    await asyncio.sleep(0.6)
    connection[1].write(LETTER)
    assert await granted(connection) == 0, "who is let in may be silent"


async def test_strangers_make_room_for_those_who_come(
    actor: LimiterActor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiter_door, "MOST_STRANGERS", 3)
    strangers = [await knock(actor, b"x") for _ in range(4)]
    assert await closed(strangers[0]) == b""
    token = (await actor.address()).token
    assert await granted(await knock(actor, token + HELLO + LETTER)) == 0


@pytest.mark.parametrize(
    "said",
    [
        b"\xc1",
        b"\xc6" + (2**31).to_bytes(4, "big") + bytes(MOST_BYTES + 2**20),
        b"\xdd" + (2**31).to_bytes(4, "big"),
        b"\x91" * 5000,
        msgpack.packb("hello"),
        msgpack.packb(["somebody", [0, 0, 0, 0, 0], 0, 0]),
        HELLO + msgpack.packb(7),
        HELLO + msgpack.packb([[["too", "short"]], [], [], False]),
    ],
    ids=["reserved", "long", "many", "deep", "no caller", "bad limits", "no letter", "no ticket"],
)
async def test_what_is_no_letter_ends_the_line_and_harms_nobody_else(
    actor: LimiterActor, said: bytes
) -> None:
    token = (await actor.address()).token
    good = await knock(actor, token + msgpack.packb(Caller("good", Limits(), 0, 0).plain()))
    assert await closed(await knock(actor, token + said)) == b""
    good[1].write(LETTER)
    assert await granted(good) == 0


async def test_nothing_is_heard_on_a_line_once_its_client_has_another(actor: LimiterActor) -> None:
    token = (await actor.address()).token
    old = await knock(actor, token + HELLO + LETTER)
    await granted(old)
    new = await knock(actor, token + HELLO + LETTER)
    await granted(new)
    assert await closed(old) == b""
    new[1].write(LETTER)
    assert await granted(new) == 0


async def test_who_takes_nothing_is_not_written_to_for_ever(
    actor: LimiterActor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiter_line, "MOST_BYTES", 2**17)
    token = (await actor.address()).token
    reader, writer = await knock(actor, token + HELLO)
    reader._transport.pause_reading()  # type: ignore[attr-defined]

    async def write() -> None:
        while True:
            writer.write(LETTER * 10_000)
            await writer.drain()

    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        await asyncio.wait_for(write(), 30)


async def test_a_token_is_its_actors_own_and_not_shown(actor: LimiterActor) -> None:
    other = LimiterActor(Limits(), host=HOST)
    own = await actor.address()
    assert own.token != (await other.address()).token
    assert len(own.token) >= 32
    assert isinstance(own, Address)
    assert str(own.token) not in repr(own)
