"""A meter that cannot be found: who asks is told so, and nobody hangs."""

from __future__ import annotations

import asyncio
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from ray.exceptions import RayActorError

from serve.gateway import meter_actor
from serve.gateway.errors import GatewayError, Overloaded
from serve.gateway.meter_actor import RayMeter
from serve.gateway.meter_host import UNWRITTEN_WAIT_SECONDS
from serve.gateway.slices import Renewal, Renewed
from tests.serve.slice_world import Cluster, key


class Dead:
    """A handle to an actor that is gone."""

    def __init__(self) -> None:
        self.take = self

    async def remote(self, _: object) -> Any:
        raise RayActorError


class Here:
    """A handle to an actor of this process."""

    def __init__(self, folder: Path) -> None:
        self.cluster = Cluster(folder)
        self.take = self

    async def remote(self, letters: list[Renewal]) -> list[Renewed | GatewayError]:
        return [self.cluster.take(letter) for letter in letters]


async def test_a_key_whose_money_is_not_limited_any_more_may_ask_though_none_can_be_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    state.write_text("no folder")
    here = Here(state)
    monkeypatch.setattr(RayMeter, "_get_or_create", lambda _: here)
    meter = RayMeter(state)
    with pytest.raises(Overloaded):
        await meter.begin(key(rpm=60, max_spend=1), "first", 1, Decimal(1))
    limited = key(rpm=60)
    await asyncio.wait_for(meter.begin(limited, "second", 1, None), 60)
    await meter.end(limited, "second", 1, None)
    # Once money can be counted, nothing of the old share is left.
    state.unlink()
    here.cluster.now += UNWRITTEN_WAIT_SECONDS
    await meter.aclose()
    await meter.aclose()
    assert not meter._all()
    assert not here.cluster.host._open
    here.cluster.host.close()


class Wrong:
    """A handle to an actor whose answers do not fit."""

    def __init__(self) -> None:
        self.take = self

    async def remote(self, letters: list[Renewal]) -> list[Renewed]:
        return [Renewed("open") for _ in letters]


async def test_an_answer_that_does_not_fit_leaves_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(RayMeter, "_get_or_create", lambda _: Wrong())
    meter = RayMeter(tmp_path)
    with pytest.raises(Overloaded):
        await asyncio.wait_for(meter.begin(key(rpm=1), "first", 1, None), 60)
    assert meter._sending is not None
    with pytest.raises(ValueError, match="zip"):
        await meter._sending


@pytest.mark.parametrize("hangs", [False, True])
async def test_one_that_nobody_finds_refuses_and_hangs_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hangs: bool
) -> None:
    monkeypatch.setattr(meter_actor, "LOST_SECONDS", 0.2)
    monkeypatch.setattr(meter_actor, "LOST_PAUSE_SECONDS", 0.01)
    let_go = threading.Event()
    looks: list[object] = []

    def look(_: RayMeter) -> Dead:
        looks.append(None)
        if len(looks) == 1:
            return Dead()
        if hangs:
            let_go.wait()
        raise RuntimeError("the head of the cluster is away")

    monkeypatch.setattr(RayMeter, "_get_or_create", look)
    meter = RayMeter(tmp_path)
    try:
        for ticket in ("first", "second"):
            with pytest.raises(Overloaded):
                await asyncio.wait_for(meter.begin(key(rpm=1), ticket, 1, None), 60)
        await asyncio.wait_for(meter.aclose(), 60)
        assert not hangs or len(looks) == 2, "a look that hangs takes one thread"
    finally:
        let_go.set()
