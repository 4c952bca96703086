"""A permit that is given back to a limiter which does not answer: it is given back once, and the
client is told what the provider said."""

from __future__ import annotations

import asyncio

import pytest

from serve.ask.permit import Lease, Outcome, OutcomeKind, Settled
from serve.gateway.errors import GatewayError, ProviderFailed, ProviderRateLimited
from tests.serve.upstream_world import KEY, KEY_ENV, Fake, World, answering, error_body, world


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)


class Silent:
    """The limiter of the first provider, which records each outcome at once, and says nothing to
    who settles."""

    def __init__(self, made: World) -> None:
        self.kinds: list[OutcomeKind] = []
        self.settling = asyncio.Event()
        permits = made.permits[0]
        self._settle, self._settle_soon = permits.settle, permits.settle_soon
        permits.settle = self.settle  # type: ignore[method-assign]
        permits.settle_soon = self.settle_soon  # type: ignore[method-assign]

    async def settle(self, lease: Lease, outcome: Outcome) -> Settled:
        self.kinds.append(outcome.kind)
        settled = await self._settle(lease, outcome)
        self.settling.set()
        await asyncio.Event().wait()
        return settled

    def settle_soon(self, lease: Lease, outcome: Outcome) -> None:
        self.kinds.append(outcome.kind)
        self._settle_soon(lease, outcome)


async def test_who_leaves_while_a_permit_is_given_back_gives_it_back_once() -> None:
    async with world(Fake([answering(500, b"oops")])) as made:
        limiter = Silent(made)
        asking = asyncio.ensure_future(made.ask(timeout=60))
        await asyncio.wait_for(limiter.settling.wait(), 60)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert limiter.kinds == ["unavailable"]


@pytest.mark.parametrize(("status", "told"), [(500, ProviderFailed), (429, ProviderRateLimited)])
async def test_time_that_is_over_while_a_permit_is_given_back_hides_no_failure(
    monkeypatch: pytest.MonkeyPatch, status: int, told: type[GatewayError]
) -> None:
    async with world(Fake([answering(status, error_body("oops"))])) as made:
        limiter = Silent(made)
        asking = asyncio.ensure_future(made.ask(timeout=60))
        await asyncio.wait_for(limiter.settling.wait(), 60)
        loop = asyncio.get_running_loop()
        with monkeypatch.context() as later:
            over = loop.time() + 60
            later.setattr(loop, "time", lambda: over)
            with pytest.raises(told):
                await asking
        assert len(limiter.kinds) == 1
