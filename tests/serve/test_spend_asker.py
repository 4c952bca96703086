"""Asking within one's means, against a provider that bills what it wrote, delivered or not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from serve.ask.ask import Asker
from serve.ask.contract import Class, Request
from serve.ask.errors import AskError, CapReached, Stopped, Unavailable
from serve.ask.permit import Lease, LimiterStats, Outcome, Settled
from serve.ask.settings import Provider
from serve.ask.spend_account import Account, reckon
from serve.ask.spend_host import Purse, SpendHost
from serve.ask.spend_journal import FILE, SpendJournal
from serve.simulated import Settings, SimulatedProvider

PRICES = {"input": "2.5", "cached": "0.3", "output": "10"}
FAULTS = {"rate_limit": 0.1, "server_error": 0.1, "reset": 0.1, "hang": 0.05, "cut": 0.1}
SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}


def _request(number: int, seconds: float) -> Request:
    words = "an ordinary line of a log, " * (5 + number % 40)
    return Request("Answer.", f"{number} {words}", 60, 0, seconds, SCHEMA)


class _Permits:
    """Sixteen calls at once, and no pause for anything: what is spent must not depend on it."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(16)
        self.held = 0

    async def acquire(self, cls: Class, tokens: int, call_seconds: float = 0.0) -> Lease:
        await self._free.acquire()
        self.held += 1
        return Lease("", cls, tokens, 0.0, 0.0)

    async def settle(self, lease: Lease, outcome: Outcome) -> Settled:
        self._free.release()
        self.held -= 1
        return Settled(breaker_open=False)

    def settle_soon(self, lease: Lease, outcome: Outcome) -> None:
        raise NotImplementedError

    async def retry_token(self) -> None:
        return

    async def stats(self) -> LimiterStats:
        raise NotImplementedError


class _World:
    """A provider with prices, and an asker with a purse."""

    def __init__(self, path: Path, base_url: str, cap: str | None, command: str = "c") -> None:
        self.path = path
        provider = Provider.model_validate(
            {"base_url": base_url, "models": ["simulated"], "prices": PRICES}
        )
        assert provider.prices is not None
        money = None if cap is None else Decimal(cap)
        purse = Purse("run", command, money, {"simulated": provider.prices["*"]})
        self.prices = purse.prices
        self.host = SpendHost(path, purse)
        self.asker = Asker(provider, "simulated", _Permits(), self.host, pauses=(0.0, 0.0, 0.0))

    async def ask(self, number: int, seconds: float = 0.4) -> AskError | None:
        lease = await self.asker.acquire("fast", 100)
        try:
            await self.asker.ask(_request(number, seconds), lease)
        except AskError as error:
            return error
        return None

    async def close(self) -> None:
        await self.asker.aclose()
        self.host.close()

    def account(self) -> Account:
        with SpendJournal(self.path) as journal:
            return reckon(journal.rows("run"), self.prices, "c")


def _bill(provider: SimulatedProvider) -> Decimal:
    return Decimal(provider.stats()["bill"])


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110  the provider tells nobody
        await asyncio.sleep(0)


def _settings(**more: Any) -> Settings:
    priced = {"prices": {"simulated": PRICES}, "bill_lost": True, "time_scale": 500}
    return Settings.model_validate(priced | more)


@pytest.mark.parametrize("cap", ["0.004", "0.03"])
async def test_no_concurrency_and_no_fault_brings_the_bill_above_the_cap(
    tmp_path: Path, cap: str
) -> None:
    with SimulatedProvider(_settings(fault_shares=FAULTS)) as provider:
        world = _World(tmp_path / FILE, provider.base_url, cap)
        ends = await asyncio.gather(*(world.ask(number) for number in range(80)))
        await world.close()
        bill, account = _bill(provider), world.account()
    assert account.total is not None
    assert bill <= account.total <= Decimal(cap)
    assert any(isinstance(end, CapReached) for end in ends)
    # What is left would not have paid for one more call at its worst.
    assert Decimal(cap) - account.total < Decimal("0.005")


async def test_without_a_cap_the_account_is_the_bill_and_what_nobody_can_tell(
    tmp_path: Path,
) -> None:
    with SimulatedProvider(_settings(fault_schedule={1: "server_error", 3: "reset"})) as provider:
        world = _World(tmp_path / FILE, provider.base_url, None)
        ends = [await world.ask(number) for number in range(5)]
        await world.close()
        bill, account = _bill(provider), world.account()
    assert ends == [None] * 5
    assert account.total is not None
    assert account.attempts == 7
    assert account.unconfirmed > 0
    lost = account.total - account.unconfirmed
    assert lost <= bill <= account.total


async def test_what_was_surely_not_billed_is_given_back(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        world = _World(tmp_path / FILE, nobody, "1")
        assert isinstance(await world.ask(1), Unavailable)
        await world.close()
        assert world.account().total == 0
    schedule = {1: "rate_limit", 2: "rate_limit"}
    with SimulatedProvider(_settings(fault_schedule=schedule)) as provider:
        world = _World(tmp_path / "other.db", provider.base_url, "1")
        assert await world.ask(1) is None
        await world.close()
        assert world.account().total == _bill(provider)


async def test_a_refusal_that_was_counted_is_paid_for(tmp_path: Path) -> None:
    poison = _settings(poison=["ordinary"], poison_as="refusal")
    with SimulatedProvider(poison) as provider:
        world = _World(tmp_path / FILE, provider.base_url, "1")
        assert await world.ask(1) is not None
        await world.close()
        assert world.account().total == _bill(provider) > 0


async def test_a_call_that_waits_for_money_ends_when_the_asking_is_stopped(tmp_path: Path) -> None:
    with SimulatedProvider(_settings(latency=[[1, 100_000.0]])) as provider:
        world = _World(tmp_path / FILE, provider.base_url, "0.002")
        first = asyncio.create_task(world.ask(1, 60.0))
        second = asyncio.create_task(world.ask(1, 60.0))
        async with asyncio.timeout(60):
            await _until(lambda: provider.stats()["in_flight"] == 1)
        world.asker.stop()
        assert isinstance(await second, Stopped)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await world.close()
    account = world.account()
    # The one that was cancelled on the wire may be billed; the one that waited was never sent.
    assert account.attempts == 1
    assert account.total == account.unconfirmed > 0


async def test_a_permit_that_comes_as_the_asking_is_stopped_is_given_back(tmp_path: Path) -> None:
    with SimulatedProvider(_settings(fault_schedule={1: "rate_limit"})) as provider:
        world = _World(tmp_path / FILE, provider.base_url, "1")
        acquire, permits = world.asker.permits.acquire, world.asker.permits
        assert isinstance(permits, _Permits)

        async def stopping(cls: Class, tokens: int, call_seconds: float = 0.0) -> Lease:
            lease = await acquire(cls, tokens)
            if cls == "retry":
                world.asker.stop()
            return lease

        permits.acquire = stopping  # type: ignore[method-assign]
        assert isinstance(await world.ask(1), Stopped)
        await world.close()
        assert provider.stats()["requests"] == 1
    assert permits.held == 0
