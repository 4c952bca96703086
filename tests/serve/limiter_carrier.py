"""Between clients and the limiter of a cluster: a real actor in this process, and on the way to it
somebody who counts letters, keeps them waiting, and cuts lines.

A test gives it to clients in place of the handle to the actor, which Ray would give them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import msgpack
import pytest
from ray.exceptions import ActorUnavailableError

from serve.ask import limiter_link
from serve.ask.limiter_actor import RayPermits
from serve.ask.limiter_line import Address
from serve.ask.limiter_server import LimiterActor
from serve.ask.permit import Limits

HOST = "127.0.0.1"
ANY = Limits()
_TOKEN_BYTES = 32


class Carrier:
    """A handle to an actor. Letters wait on their way `there` and replies on their way `back` while
    these are cleared; a line is cut with probability `lost` for each letter, before it arrives or
    before its reply does, and in place of the next `losing` replies; `away`: Ray does not find the
    actor. `letters`: that were written."""

    def __init__(self, limits: Limits = ANY, lost: float = 0.0, seed: int = 0) -> None:
        self.actor = LimiterActor(limits, host=HOST)
        self.letters = 0
        self.losing = 0
        self.away = False
        self.there, self.back = asyncio.Event(), asyncio.Event()
        self.there.set()
        self.back.set()
        self._lost = lost
        self._random = random.Random(seed)
        self._lines: set[asyncio.StreamWriter] = set()
        self._none = asyncio.Event()
        self._awaited: dict[str, asyncio.Event] = {}
        self._serving = asyncio.ensure_future(asyncio.start_server(self._serve, HOST, 0))

    @property
    def address(self) -> Any:
        """The actor's method, as a handle has it."""
        carrier = self

        class Method:
            @staticmethod
            def remote() -> asyncio.Future[Address]:
                return asyncio.ensure_future(carrier._address())

        return Method

    def restart(self, actor: LimiterActor) -> None:
        """Another actor is there, and the lines to the old one are lost."""
        self.actor = actor
        self.cut()

    def cut(self) -> None:
        """All lines are lost, with what is on its way."""
        for line in list(self._lines):
            line.transport.abort()

    async def written(self, letters: int) -> None:
        """Until there were so many letters."""
        while self.letters < letters:
            await self.next("letter")

    async def no_lines(self) -> None:
        """Until there are none."""
        await asyncio.wait_for(self._none.wait(), 5)

    async def next(self, what: str) -> None:
        """Until a `letter` has been written, or a `reply` to one, from now on."""
        event = self._awaited[what] = asyncio.Event()
        await asyncio.wait_for(event.wait(), 5)

    async def _address(self) -> Address:
        if self.away:
            raise ActorUnavailableError("not there", None)
        address = await self.actor.address()
        return Address(HOST, (await self._serving).sockets[0].getsockname()[1], address.token)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = await self.actor.address()
        far_reader, far_writer = await asyncio.open_connection(address.host, address.port)
        lines = {writer, far_writer}
        self._lines |= lines
        self._none.clear()
        try:
            far_writer.write(await reader.readexactly(_TOKEN_BYTES))
            async with asyncio.TaskGroup() as group:
                group.create_task(self._letters(reader, far_writer))
                group.create_task(self._replies(far_reader, writer))
        except* (_Cut, OSError):
            pass
        finally:
            self._lines -= lines
            if not self._lines:
                self._none.set()
            for line in lines:
                line.transport.abort()

    async def _letters(self, reader: asyncio.StreamReader, far: asyncio.StreamWriter) -> None:
        presented = False
        async for value in _values(reader):
            if presented:
                self.letters += 1
                self._tell("letter")
                await self.there.wait()
                self._maybe_cut()
            presented = True
            far.write(msgpack.packb(value))
        raise _Cut

    async def _replies(self, far: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for value in _values(far):
            if value[1] is not None:
                self._tell("reply")
                await self.back.wait()
                self._maybe_cut()
                if self.losing:
                    self.losing -= 1
                    raise _Cut
            writer.write(msgpack.packb(value))
        raise _Cut

    def _tell(self, what: str) -> None:
        if event := self._awaited.pop(what, None):
            event.set()

    def _maybe_cut(self) -> None:
        if self._random.random() < self._lost / 2:
            raise _Cut


class _Cut(Exception):
    """The line is over."""


async def _values(reader: asyncio.StreamReader) -> AsyncIterator[Any]:
    unpacker = msgpack.Unpacker()
    while data := await reader.read(2**16):
        unpacker.feed(data)
        for value in unpacker:
            yield value


def client_of(
    carrier: Carrier, monkeypatch: pytest.MonkeyPatch, limits: Limits = ANY
) -> RayPermits:
    """A client that finds the actor through `carrier`, at once."""
    monkeypatch.setattr(limiter_link, "find_server", lambda name, limits: carrier)
    monkeypatch.setattr(limiter_link, "LOST_PAUSE_SECONDS", 0.001)
    return RayPermits("http://nowhere/v1", None, limits)
