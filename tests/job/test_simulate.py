"""`fupan simulate` as a user types it."""

from __future__ import annotations

import socket

from tests.command import fupan


def test_a_taken_port_is_told_before_anything_is_promised() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = fupan("simulate", "--port", str(port))
    assert ended.code == 2
    assert f"cannot listen on 127.0.0.1:{port}" in ended.err
    assert "simulated provider at" not in ended.err
