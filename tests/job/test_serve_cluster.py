"""How the gateway ends, without a cluster."""

from __future__ import annotations

import itertools

import pytest

from job.commands.serve_cluster import in_flight, wait_until_gone
from job.errors import JobError
from tests.serve.gateway_world import gateway_world


def test_what_takes_longer_than_rays_minute_is_waited_for() -> None:
    now = itertools.count(step=20)
    left = iter([False, False, False, False, True])
    wait_until_gone(lambda: next(left), 165, lambda: next(now), lambda _: None)
    assert next(now) > 60
    assert next(left, None) is None


def test_what_never_ends_is_told() -> None:
    now = itertools.count(step=20)
    with pytest.raises(JobError, match="within 165 s"):
        wait_until_gone(lambda: False, 165, lambda: next(now), lambda _: None)


def test_it_tells_how_many_requests_are_in_flight() -> None:
    with gateway_world({"main": "http://127.0.0.1:9/v1"}) as world:
        assert in_flight(world.base_url) == 0
        turns = [world.gateway.admission.turn() for _ in range(2)]
        for turn in turns:
            world.run(turn.begin())
        assert in_flight(world.base_url) == 2
    assert in_flight(world.base_url) is None
    with gateway_world({"main": "http://127.0.0.1:9/v1"}, {"metrics": False}) as world:
        assert in_flight(world.base_url) is None
