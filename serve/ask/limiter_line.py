"""One connection between the limiter of a cluster and a client: values one after another, in
msgpack.

Invariant: what arrives is data and nothing else; of one value, and of what the other end does not
take, no more than MOST_BYTES are held; after `end` nothing is heard.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgpack

MOST_BYTES = 16 * 2**20
"""Some 200,000 tickets."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a limiter listens, and the `token` that whoever comes has to show first."""

    host: str
    port: int
    token: bytes = field(repr=False)


class Line(asyncio.Protocol):
    """One end. `hear` is called with each value and may raise ValueError for one that is not what
    it should be, which ends the connection; `lost` once it has ended, whoever did it. Belongs to
    one loop."""

    def __init__(self, hear: Callable[[Any], None], lost: Callable[[], None]) -> None:
        self._hear = hear
        self._lost = lost
        self._transport: asyncio.Transport
        self._values = msgpack.Unpacker(use_list=False, max_buffer_size=MOST_BYTES)
        self._pack = msgpack.Packer().pack
        self.over = False
        """Whether it has ended."""

    def say(self, value: object) -> None:
        """Send a value of plain data; once in a turn of the loop, since each is a packet."""
        if not self.over:
            self._transport.write(self._pack(value))

    def end(self) -> None:
        """End the connection at once."""
        self.over = True
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = transport  # type: ignore[assignment]
        self._transport.set_write_buffer_limits(high=MOST_BYTES)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        try:
            self._values.feed(data)
            for value in self._values:
                if self.over:
                    return
                self._hear(value)
        except (msgpack.UnpackException, ValueError) as error:
            peer = self._transport.get_extra_info("peername")
            _LOG.warning("%s sends what is no letter: %s", peer, type(error).__name__)
            self.end()

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`: the other end takes nothing any more."""
        self.end()

    def connection_lost(self, error: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self.over = True
        self._lost()


async def connect(address: Address, hear: Callable[[Any], None], lost: Callable[[], None]) -> Line:
    """A line to whoever listens there. Raises OSError."""
    transport, line = await asyncio.get_running_loop().create_connection(
        lambda: Line(hear, lost), address.host, address.port
    )
    transport.write(address.token)
    return line
