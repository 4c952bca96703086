"""`fupan simulate` as a user types it."""

from __future__ import annotations

import socket

import pytest

from tests.command import fupan

pytestmark = pytest.mark.slow


def test_a_taken_port_is_told_before_anything_is_promised() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = fupan("simulate", "--port", str(port))
    assert ended.code == 2
    assert f"cannot listen on 127.0.0.1:{port}" in ended.err
    assert "simulated provider at" not in ended.err


@pytest.mark.parametrize("price", ["2,3", "other=1,1,1", "1,x,1"])
def test_a_price_that_cannot_be_used_is_told(price: str) -> None:
    ended = fupan("simulate", "--port", "0", "--price", price)
    assert ended.code == 2
    assert "price" in ended.err
