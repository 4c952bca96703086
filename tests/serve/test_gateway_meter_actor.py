"""One meter for all replicas of a cluster, which may end at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
import ray

from serve.gateway.errors import KeyRateLimited, KeySpent
from serve.gateway.keys import KeyRecord
from serve.gateway.meter_actor import RayMeter

D = Decimal


def key(name: str, **limits: object) -> KeyRecord:
    return KeyRecord.model_validate({"name": name, "tenant": "w", "sha256": "0" * 64, **limits})


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.ray
async def test_replicas_share_what_a_key_has_and_the_meters_death_changes_nothing(
    cluster: None, tmp_path: Path
) -> None:
    first, second = RayMeter(tmp_path), RayMeter(tmp_path)
    ten = key("ten", max_spend=10, rpm=1_000)

    # Two hundred at once from two replicas: exactly as many as there is money for.
    async def begin(meter: RayMeter, ticket: str) -> bool:
        try:
            await meter.begin(ten, ticket, 1, D("0.1"))
        except KeyRateLimited:
            return False
        return True

    tickets = [(meter, f"{n}-{i}") for i, meter in enumerate((first, second)) for n in range(100)]
    went = await asyncio.gather(*(begin(meter, ticket) for meter, ticket in tickets))
    assert sum(went) == 100
    granted = [one for one, goes in zip(tickets, went, strict=True) if goes]
    for meter, ticket in granted[:60]:
        await meter.end(ten, ticket, 1, D("0.05"))
    await first.aclose()
    await second.aclose()

    # The actor dies; what it granted is known to the one that replaces it.
    ray.kill(first._actor, no_restart=False)
    await second.begin(ten, "after", 1, D(3))
    for meter, ticket in granted[60:]:
        await meter.end(ten, ticket, 1, D("0.1"))
    await second.end(ten, "after", 1, D(3))
    await asyncio.gather(first.aclose(), second.aclose())
    with pytest.raises(KeySpent):
        await first.begin(ten, "too much", 1, D("0.01"))

    # Who is cancelled counts for nothing.
    once = key("once", rpm=1)
    task = asyncio.create_task(first.begin(once, "gone", 1, None))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await first.aclose()
    await second.begin(once, "here", 1, None)
    with pytest.raises(KeyRateLimited) as refused:
        await first.begin(once, "late", 1, None)
    assert refused.value.retry_after is not None
    assert 50 < refused.value.retry_after <= 60
    assert refused.value.code == "key_rate_limited"
