"""A meter that cannot be found: who asks is told so, and nobody hangs."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from ray.exceptions import RayActorError

from serve.gateway import meter_actor
from serve.gateway.errors import Overloaded
from serve.gateway.meter_actor import RayMeter
from tests.serve.slice_world import key


class Dead:
    """A handle to an actor that is gone."""

    def __init__(self) -> None:
        self.take = self

    async def remote(self, _: object) -> Any:
        raise RayActorError


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
            let_go.wait(10)
        raise RuntimeError("the head of the cluster is away")

    monkeypatch.setattr(RayMeter, "_get_or_create", look)
    meter = RayMeter(tmp_path)
    began = time.monotonic()
    try:
        for ticket in ("first", "second"):
            with pytest.raises(Overloaded):
                await asyncio.wait_for(meter.begin(key(rpm=1), ticket, 1, None), 3)
        await asyncio.wait_for(meter.aclose(), 3)
        assert time.monotonic() - began < 3
        assert not hangs or len(looks) == 2, "a look that hangs takes one thread"
    finally:
        let_go.set()
