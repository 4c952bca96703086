"""How many replicas a model has: as the gateway's, within bounds of its own; and none where nobody
has asked for long.

Invariant: none are left only after `idle_to_zero` seconds without a request, and the first request
after that starts as many as the least at once; otherwise it is `serve.autoscaling.decide`.
"""

from __future__ import annotations

import math
from typing import Any

from ray.serve.config import AutoscalingConfig

from serve.autoscaling import History, Pace, decide
from serve.models.settings import PlacementSettings

LOOK_BACK = 12.0
"""Seconds over which Ray Serve averages a model's requests: it counts them every ten."""
_STATE = "history"
_BUSY = "busy"


class Idle:
    """The policy of a model that may have no replica, as Ray Serve calls it."""

    def __init__(self, idle_to_zero: float, fewest: int, **pace: float) -> None:
        """`idle_to_zero`: seconds; `fewest`: replicas while it is used."""
        self._idle = idle_to_zero
        self._fewest = fewest
        self._pace = Pace(**pace)  # type: ignore[arg-type]  # numbers of the settings

    def __call__(self, context: Any) -> tuple[int, dict[str, Any]]:
        """`context`: Ray Serve's AutoscalingContext."""
        state, now = context.policy_state, context.current_time
        requests, target = context.total_num_requests, context.target_num_replicas
        busy = now if requests > 0 else min(state.get(_BUSY, now), now)
        if requests == 0 and (target == 0 or now - busy >= self._idle):
            return 0, {_BUSY: busy}
        count, history = decide(
            state.get(_STATE, History()),
            now,
            math.ceil(requests / context.config.get_target_ongoing_requests()),
            target,
            (self._fewest, context.capacity_adjusted_max_replicas),
            self._pace,
        )
        return count, {_STATE: history, _BUSY: busy}


def replicas_of(entry: PlacementSettings) -> dict[str, Any]:
    """The options of a deployment that say how many replicas it has."""
    fewest, most, idle = entry.replicas.min, entry.replicas.max, entry.idle_to_zero
    if fewest == most and idle is None:
        return {"num_replicas": fewest}
    pace = entry.pace.model_dump()
    policy: dict[str, Any] = {
        "policy_function": "serve.autoscaling:Policy",
        "policy_kwargs": pace,
    }
    if idle is not None:
        policy = {
            "policy_function": f"{Idle.__module__}:{Idle.__name__}",
            "policy_kwargs": {**pace, "idle_to_zero": idle, "fewest": fewest},
        }
    return {
        "autoscaling_config": AutoscalingConfig(
            min_replicas=fewest if idle is None else 0,
            # Whether it can be loaded is known at once, not when somebody asks.
            initial_replicas=fewest,
            max_replicas=most,
            target_ongoing_requests=entry.in_flight,
            look_back_period_s=LOOK_BACK,
            # The policies have delays of their own.
            upscale_delay_s=0,
            downscale_delay_s=0,
            policy=policy,
        )
    }
