"""The models of the cluster on Ray Serve: one application for each entry of `models`.

Invariant: a model that cannot be loaded takes neither the gateway nor another model along, and a
change of the gateway restarts no model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ray
from ray import serve as ray_serve
from ray.serve.schema import LoggingConfig

from serve.app import APPLICATION as GATEWAY
from serve.app import LONGER, longest_request, read_settings
from serve.gateway.settings import GatewaySettings
from serve.models.calls import APPLICATION, DEPLOYMENT
from serve.models.load import LOADER, Loader
from serve.models.placement import Placement, place
from serve.models.replica import ModelReplica
from serve.models.scaling import replicas_of
from serve.models.settings import Entry, PoolSettings

ASIDE = 512
"""Requests that a replica takes beyond those that its model's queue holds: those that are being
answered, and those that are told that it is full."""

_deployment = ray_serve.deployment(
    ModelReplica,
    name=DEPLOYMENT,
    health_check_period_s=5,
    # A step on the CPU can take seconds.
    health_check_timeout_s=30,
    graceful_shutdown_wait_loop_s=1,
    logging_config=LoggingConfig(enable_access_log=False),
)


def build(args: dict[str, Any]) -> ray_serve.Application:
    """The application of one model, from `args` of a Serve config file: `model`, its name in the
    section `models`, and the same as `serve.app:build` takes. Raises ValueError."""
    given = dict(args)
    name = given.pop("model", None)
    settings = read_settings(given)
    if name not in settings.models:
        known = ", ".join(settings.models) or "none"
        raise ValueError(f"args: no model {name!r} in models; there are: {known}")
    return application(settings, name, placement(settings.models[name]))


def placement(entry: Entry) -> Placement:
    """Where `entry` runs in the cluster that this process is connected to."""
    return place(entry, ray.cluster_resources().get("GPU", 0.0))


def application(
    settings: GatewaySettings, name: str, where: Placement, loader: Loader = LOADER
) -> ray_serve.Application:
    """The application of the entry `name`. `loader`: of its process."""
    entry = settings.models[name]
    section = {name: entry.model_dump(mode="json", exclude_defaults=True)}
    waiting = _queue(entry)
    return _deployment.options(
        ray_actor_options=where.actor_options,
        # The model's own queue turns requests away, with a word when to come again.
        max_ongoing_requests=waiting + ASIDE,
        # In each process of the gateway, while no replica is there yet. A burst counts as queued
        # until each request is handed to a replica.
        max_queued_requests=waiting + ASIDE,
        graceful_shutdown_timeout_s=longest_request(settings) + LONGER,
        **replicas_of(entry),
    ).bind(section, loader, GATEWAY if settings.serve.metrics else None)


def targets(
    settings: GatewaySettings, placements: Mapping[str, Placement], loader: Loader = LOADER
) -> list[ray_serve.RunTarget]:
    """The applications of all entries of `placements`, to be run. `loader`: of their processes."""
    return [
        ray_serve.RunTarget(
            application(settings, name, where, loader), APPLICATION.format(name), route_prefix=None
        )
        for name, where in placements.items()
    ]


def _queue(entry: Entry) -> int:
    """Requests that may wait."""
    if isinstance(entry, PoolSettings):
        return max(model.queue for model in entry.pool.values())
    return entry.queue
