"""Where a model runs, and how often: settings and what the cluster has -> what Ray is asked for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from serve.models.placement import place
from serve.models.scaling import Idle, replicas_of
from serve.models.settings import Entry, Models

WRITER = {"generator": "big"}
PACE = {"up_after": 10.0, "down_after": 60.0}
IDLE = 300.0


def entry(**fields: Any) -> Entry:
    models: dict[str, Entry] = TypeAdapter(Models).validate_python({"m": fields})
    return models["m"]


@pytest.mark.parametrize(
    ("fields", "gpus", "share", "said"),
    [
        (WRITER, 0, 0, "CPU (no GPU in this cluster)"),
        (WRITER, 2, 1, "a GPU"),
        ({**WRITER, "gpus": 0.25}, 2, 0.25, "0.25 of a GPU"),
        ({**WRITER, "gpus": 0.25}, 0, 0, "CPU (no GPU in this cluster)"),
        ({**WRITER, "gpus": 0}, 2, 0, "CPU (gpus: 0)"),
        ({"embedder": "bundled"}, 2, 0, "CPU (`bundled` computes on the CPU alone)"),
        ({"embedder": "BAAI/bge-m3", "gpus": 0.5}, 1, 0.5, "0.5 of a GPU"),
        ({"pool": {"a": {"embedder": "bundled"}, "b": WRITER}}, 1, 1, "a GPU"),
        ({**WRITER, "accelerator_type": "L4"}, 1, 1, "a GPU (L4)"),
        # A cluster may add nodes when they are asked for.
        (
            {**WRITER, "accelerator_type": "L4"},
            0,
            1,
            "a GPU (L4), which the cluster has to add: it has none",
        ),
    ],
)
def test_a_model_runs_where_it_can_and_it_is_said_where(
    fields: dict[str, Any], gpus: int, share: float, said: str
) -> None:
    where = place(entry(**fields), gpus)
    assert (where.actor_options["num_gpus"], where.said) == (share, said)
    assert where.actor_options.get("accelerator_type") == (
        fields.get("accelerator_type") if share else None
    )


def test_what_a_replica_reserves_is_passed_on() -> None:
    where = place(entry(**WRITER, cpus=2, memory=2**30), 0)
    assert where.actor_options == {"num_cpus": 2, "num_gpus": 0, "memory": 2**30}


def test_bounds_and_idleness_decide_who_says_how_many_there_are() -> None:
    assert replicas_of(entry(**WRITER, replicas=3)) == {"num_replicas": 3}
    config = replicas_of(entry(**WRITER, replicas="auto", in_flight=8))["autoscaling_config"]
    assert (config.min_replicas, config.max_replicas, config.target_ongoing_requests) == (1, 4, 8)
    assert isinstance(config.policy.get_policy(), type)
    rare = replicas_of(entry(**WRITER, idle_to_zero=IDLE))["autoscaling_config"]
    assert (rare.min_replicas, rare.initial_replicas, rare.max_replicas) == (0, 1, 1)


class World:
    """A model with 2 to 4 replicas of 10 requests each, in simulated time."""

    def __init__(self) -> None:
        self.policy = Idle(IDLE, 2, **PACE)
        self.state: dict[str, Any] = {}
        self.replicas = 2
        self.now = 1_000.0

    def step(self, requests: float, seconds: float = 1.0) -> int:
        self.now += seconds
        config = SimpleNamespace(get_target_ongoing_requests=lambda: 10)
        self.replicas, self.state = self.policy(
            SimpleNamespace(
                policy_state=self.state,
                current_time=self.now,
                total_num_requests=requests,
                target_num_replicas=self.replicas,
                capacity_adjusted_max_replicas=4,
                config=config,
            )
        )
        return self.replicas


def test_none_are_left_after_long_without_a_request_and_the_first_brings_all_back() -> None:
    world = World()
    world.step(1)
    assert {world.step(0) for _ in range(int(IDLE) - 1)} == {2}
    assert world.step(0) == 0
    assert {world.step(0) for _ in range(50)} == {0}
    assert world.step(0.1) == 2


@given(st.lists(st.sampled_from([0.0, 0.5, 15.0, 100.0]), max_size=400))
def test_it_has_replicas_while_anybody_asks_and_keeps_within_its_bounds(
    loads: list[float],
) -> None:
    world = World()
    quiet = 0
    for requests in loads:
        quiet = quiet + 5 if requests == 0 else 0
        count = world.step(requests, 5.0)
        assert count in (0, 2, 3, 4)
        if count == 0:
            assert quiet >= IDLE
