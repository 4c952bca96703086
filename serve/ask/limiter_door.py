"""Where the clients of a limiter come in: a listening socket, and a token to be shown first.

Invariant: nothing that somebody without the token sends is looked at but for its first bytes, which
are compared; such a connection is closed as soon as they are there, or after SHOW_SECONDS, and at
most MOST_STRANGERS of them are open.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Callable

from serve.ask.limiter_line import Address, Line

SHOW_SECONDS = 5.0
"""How long a token is waited for: a client sends it with the first packet."""
MOST_STRANGERS = 128
"""When there are more, who came first goes; a client is one for as long as a packet takes."""
_LOG = logging.getLogger(__name__)


class Door:
    """Listens for clients. `line`: makes the end of the line for one who is let in."""

    def __init__(self, line: Callable[[], Line]) -> None:
        self.line = line
        self.token = secrets.token_bytes(32)
        self._strangers: dict[Stranger, None] = {}
        self._listening: asyncio.Server | None = None

    async def open(self, host: str) -> Address:
        """Listen on a free port of the interface with the address `host`. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(lambda: Stranger(self), host, 0)
        return Address(host, self._listening.sockets[0].getsockname()[1], self.token)

    def came(self, stranger: Stranger) -> None:
        """Somebody is at the door."""
        self._strangers[stranger] = None
        if len(self._strangers) > MOST_STRANGERS:
            next(iter(self._strangers)).turn_away()

    def left(self, stranger: Stranger) -> None:
        """Nobody is any more, or is no stranger any more."""
        self._strangers.pop(stranger, None)


class Stranger(asyncio.Protocol):
    """One who has not shown the token yet."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._shown = b""
        self._transport: asyncio.Transport
        self._patience: asyncio.TimerHandle

    def turn_away(self) -> None:
        """Close the connection."""
        self._gone()
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = transport  # type: ignore[assignment]
        self._patience = asyncio.get_running_loop().call_later(SHOW_SECONDS, self.turn_away)
        self._door.came(self)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        token = self._door.token
        self._shown += data
        # Not sooner: how many of its bytes are right must not be told.
        if len(self._shown) < len(token) or self._transport.is_closing():
            return
        if not hmac.compare_digest(self._shown[: len(token)], token):
            peer = self._transport.get_extra_info("peername")
            _LOG.warning("%s came without the token and was turned away", peer)
            self.turn_away()
            return
        self._gone()
        line = self._door.line()
        self._transport.set_protocol(line)
        line.connection_made(self._transport)
        if rest := self._shown[len(token) :]:
            line.data_received(rest)

    def connection_lost(self, error: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._gone()

    def _gone(self) -> None:
        self._patience.cancel()
        self._door.left(self)
