"""One purse for several askers: its actor may die at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
import ray

from serve.ask.contract import Usage
from serve.ask.errors import CapReached
from serve.ask.settings import Prices
from serve.ask.spend import Call
from serve.ask.spend_account import reckon
from serve.ask.spend_actor import RaySpend, start_spend
from serve.ask.spend_host import Purse
from serve.ask.spend_journal import FILE, SpendJournal

pytestmark = pytest.mark.ray

PRICES = {"m": Prices(input=Decimal(2), output=Decimal(3))}
CALL = Call("m", 1000, 500, 60.0, {("operation", "a.log"): 1.0})
WORST = Decimal("0.0055")
COST = Decimal("0.0023")


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


async def test_an_actor_that_dies_loses_nothing_and_counts_nothing_twice(
    cluster: None, tmp_path: Path
) -> None:
    purse = Purse("run", "c", Decimal("0.0135"), PRICES)
    actor = start_spend(tmp_path / FILE, purse)
    one, other = RaySpend(actor), RaySpend(actor)
    await one.reserve("a", CALL)
    await other.reserve("b", CALL)
    waiting = asyncio.create_task(one.reserve("c", CALL))  # 0.0165 would be above the cap
    await asyncio.sleep(0)
    ray.kill(actor, no_restart=False)
    await one.settle("a", "answered", Usage(1000, 100, 0))
    await one.settle("a", "answered", Usage(1000, 100, 0))
    # 0.0023 + 2 x 0.0055 = 0.0133.
    await asyncio.wait_for(waiting, 60)
    ray.kill(actor, no_restart=False)
    await other.settle("b", "unconfirmed")
    await one.settle("c", "free")
    assert one.seen.spent == COST + WORST
    with pytest.raises(CapReached):
        await other.reserve("d", Call("m", 3000, 500, 60.0))
    with SpendJournal(tmp_path / FILE) as journal:
        account = reckon(journal.rows("run"), PRICES, "c")
    assert (account.total, account.unconfirmed) == (COST + WORST, WORST)
    assert account.attempts == 3
