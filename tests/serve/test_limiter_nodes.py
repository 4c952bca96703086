"""One limiter for the nodes of a cluster: it is reached across them, and survives the loss of its
own. The two nodes have addresses of their own on the loopback interface."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

from serve.ask.limiter_actor import RayPermits
from serve.ask.limiter_server import NAMESPACE, LimiterActor, server_name
from serve.ask.permit import Limits, Outcome

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(sys.platform != "linux", reason="has one loopback address alone"),
]

URL = "https://llm.example/v1"
KEY, KEY_ENV = "of the nodes", "TEST_LIMITER_NODES_KEY"
HEAD, FAR = "127.0.0.2", "127.0.0.3"
STORE_BYTES = 100 * 2**20
LIMITS = Limits(rpm=600, burst=20, max_concurrency=4)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    try:
        for node in (HEAD, FAR):
            made.add_node(
                node_ip_address=node,
                num_cpus=1,
                resources={"room": 1},
                object_store_memory=STORE_BYTES,
            )
        ray.init(address=made.address, _node_ip_address=HEAD, log_to_driver=False)
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


class Client:
    """A process on another node that asks the same provider."""

    def __init__(self) -> None:
        os.environ[KEY_ENV] = KEY
        self._permits = RayPermits(URL, KEY_ENV, LIMITS)

    async def work(self, calls: int) -> int:
        await work(self._permits, calls)
        return calls


class Nothing:
    """Takes room."""


async def work(permits: RayPermits, calls: int) -> None:
    """Make so many calls, all at once as far as they may."""

    async def one() -> None:
        lease = await permits.acquire("fast", 100)
        await asyncio.sleep(0.01)
        await permits.settle(lease, Outcome("ok", tokens=100))

    await asyncio.gather(*(one() for _ in range(calls)))


def start_limiter() -> Any:
    """Where there is room for it."""
    options = {"name": server_name(URL, KEY), "namespace": NAMESPACE, "lifetime": "detached"}
    actor = ray.remote(LimiterActor).options(
        **options, num_cpus=0, max_restarts=-1, resources={"room": 1}
    )
    return actor.remote(LIMITS)


def start_at(node: str, actor: type, **resources: float) -> Any:
    """An actor on that node."""
    resources[f"node:{node}"] = 0.001
    return ray.remote(actor).options(num_cpus=0, resources=resources).remote()


def test_nodes_share_one_limiter_and_survive_the_loss_of_its_node(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)
    in_its_place = start_at(HEAD, Nothing, room=1)
    ray.get(in_its_place.__ray_ready__.remote())
    limiter = start_limiter()
    address = ray.get(limiter.address.remote())
    assert address.host == FAR
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HEAD, address.port))
    ray.kill(in_its_place)
    other = start_at(FAR, Client)

    async def main() -> None:
        permits = RayPermits(URL, KEY_ENV, LIMITS)
        theirs = other.work.remote(15)
        await work(permits, 15)
        assert await theirs == 15
        stats = await permits.stats()
        assert (stats.granted, stats.in_use) == (30, 0)
        assert stats.peak <= 4
        await permits.acquire("fast", 100)
        [far] = [node for node in cluster.list_all_nodes() if node.node_ip_address == FAR]
        await asyncio.to_thread(cluster.remove_node, far, allow_graceful=False)
        deadline = time.monotonic() + 60
        # The processes of a node that is lost go a little later than the node.
        while (stats := await permits.stats()).granted > 30:
            assert time.monotonic() < deadline, stats
            await asyncio.sleep(0.1)
        await permits.acquire("fast", 100)
        assert (await permits.stats()).granted == 1

    asyncio.run(main())
    assert ray.get(limiter.address.remote()).host == HEAD
