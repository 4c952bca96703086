"""Records asked about under a cap: stopped in time, and gone on with for nothing twice."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from serve.ask.settings import Prices
from serve.ask.spend_account import reckon
from serve.ask.spend_host import Purse, SpendHost
from serve.ask.spend_journal import FILE, SpendJournal
from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from tests.job.dispatching import MemoryStore, dispatcher
from tests.job.make import record

pytestmark = pytest.mark.slow

RECORDS = [
    record(f"page {n} was served to somebody in {n % 7} s", source=f"{n % 3}.log", position=n)
    for n in range(400)
]
PRICE = {"input": "2.5", "output": "10"}
PRICES = {"simulated": Prices.model_validate(PRICE)}
FAULTS = {"rate_limit": 0.1, "reset": 0.1, "cut": 0.1, "missing": 0.1, "doubled": 0.05}


async def _ask(
    base_url: str, path: Path, cap: str, command: str, store: MemoryStore
) -> Counter[str]:
    """How the records ended under `cap`."""
    host = SpendHost(path, Purse("run", command, Decimal(cap), PRICES))
    async with dispatcher(base_url, store=store) as made:
        made.asker.spend = host
        results = await made.submit(RECORDS)
    host.close()
    return Counter(result.via for result in results)


async def test_a_cap_stops_the_asking_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {
            "prices": {"simulated": PRICE},
            "bill_lost": True,
            "fault_shares": FAULTS,
            "fault_seed": 3,
            "fault_retry_after": 0.01,
            "time_scale": 200,
        }
    )
    path, store = tmp_path / FILE, MemoryStore()
    with SimulatedProvider(settings) as provider:
        first = await _ask(provider.base_url, path, "0.10", "c1", store)
        requests, bill = provider.stats()["requests"], Decimal(provider.stats()["bill"])
        assert first["unasked"] > 0
        assert first["answered"] > 0
        assert bill <= Decimal("0.10")

        again = await _ask(provider.base_url, path, "0.10", "c2", store)
        assert again == {"recalled": first["answered"], "unasked": first["unasked"]}
        assert provider.stats()["requests"] == requests

        done = await _ask(provider.base_url, path, "5", "c3", store)
        assert done == {"recalled": first["answered"], "answered": first["unasked"]}
        bill = Decimal(provider.stats()["bill"])
    with SpendJournal(path) as journal:
        account = reckon(journal.rows("run"), PRICES, "c3")
    assert account.total is not None
    assert bill <= account.total <= 5
    assert {source for _, source in account.shares} == {"0.log", "1.log", "2.log"}


async def test_money_that_is_too_little_for_the_dear_model_is_spent_on_the_cheap_one(
    tmp_path: Path,
) -> None:
    prices = {
        "small": Prices(input=Decimal("0.1"), output=Decimal("0.4")),
        "large": Prices(input=Decimal(1000), output=Decimal(4000)),
    }
    models = tuple(prices)
    records = [record(f"the disk is full on host {n}") for n in range(20)]
    records += [record(f"prove that the disk is full on host {n}") for n in range(20)]
    served = Settings.model_validate({"models": models, "time_scale": 200})
    host = SpendHost(tmp_path / FILE, Purse("run", "c", Decimal("0.1"), prices))
    with SimulatedProvider(served) as provider:
        async with dispatcher(provider.base_url, models=models, prices=prices) as made:
            made.asker.spend = host
            results = await made.submit(records)
            assert made.stopped is None
        assert provider.stats()["requests"] > 0
    assert host.seen.refused
    host.close()
    assert [result.via for result in results] == ["answered"] * 20 + ["unasked"] * 20
    assert results[-1].reason == "the cap of 0.1 USD is reached"
