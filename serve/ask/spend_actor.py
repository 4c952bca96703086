"""The one actor of a run that everybody who asks spends through, and the client to it.

Invariant: the actor lives where the journal is, and one that replaces it knows what it granted: a
call that its death interrupts is repeated under the same ticket and counts once. Nobody sends
without a reservation: where none can be had, the asking stops.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from serve.ask.contract import Usage
from serve.ask.errors import CapReached, Stopped
from serve.ask.spend import Call, Ended
from serve.ask.spend_host import Purse, Seen, SpendHost

RETRIES = 10
"""Of a call that an actor's death interrupted: reserving and settling may be repeated."""
MAX_CALLS = 10_000
"""Calls the actor takes at once: each one that waits for its reservation is one."""


class SpendActor:
    """Hosts one `SpendHost` on the node it was started on (the driver's: the journal is there)."""

    def __init__(self, path: str, purse: Purse) -> None:
        self._host = SpendHost(Path(path), purse)

    async def reserve(self, ticket: str, call: Call) -> str | None:
        """None once `call` may be sent, else why it may not."""
        try:
            await self._host.reserve(ticket, call)
        except CapReached as error:
            return error.message
        return None

    async def withdraw(self, ticket: str) -> None:
        """See `SpendHost.withdraw`."""
        await self._host.withdraw(ticket)

    async def settle(self, ticket: str, ended: Ended, usage: Usage | None) -> Seen:
        """See `Spend.settle`; what is spent then."""
        await self._host.settle(ticket, ended, usage)
        return self._host.seen


def start_spend(path: Path, purse: Purse) -> Any:
    """The actor for the journal at `path`, on the node of the caller, where the file is. It takes
    no CPU and is started again if it dies."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    actor = ray.remote(SpendActor).options(
        num_cpus=0,
        max_restarts=-1,
        max_task_retries=RETRIES,
        max_concurrency=MAX_CALLS,
        scheduling_strategy=here,
    )
    return actor.remote(str(path), purse)


class RaySpend:
    """`Spend` through the actor of the run. `seen`: as it was when the last call was settled."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self.seen = Seen()

    async def reserve(self, ticket: str, call: Call) -> None:
        """See `Spend.reserve`."""
        try:
            refused: str | None = await self._actor.reserve.remote(ticket, call)
        except RayError as error:
            raise Stopped(f"what is spent cannot be accounted for: {_words(error)}") from error
        except BaseException:
            self._actor.withdraw.remote(ticket)
            raise
        if refused is not None:
            self.seen = replace(self.seen, refused=self.seen.refused or not call.optional)
            raise CapReached(refused)

    async def settle(self, ticket: str, ended: Ended, usage: Usage | None = None) -> None:
        """See `Spend.settle`. Never fails: a reservation that cannot be settled stays spent."""
        try:
            self.seen = await self._actor.settle.remote(ticket, ended, usage)
        except RayError:
            return


def _words(error: RayError) -> str:
    return str(error).strip().splitlines()[-1]
