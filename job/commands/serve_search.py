"""The search, for as long as `fupan serve` runs.

Invariant: only an application that it started itself is ever deleted.
"""

from __future__ import annotations

from dataclasses import dataclass

from ray import serve as ray_serve

from job.commands.serve_apps import Wait, runs
from serve.gateway.settings import GatewaySettings
from serve.search.calls import APPLICATION
from serve.search.deployment import application


@dataclass(frozen=True)
class OwnSearch:
    """`started`: whether it is ours to end."""

    started: bool

    def delete(self) -> None:
        """Begin to end it, if it was started here."""
        if self.started:
            ray_serve.delete(APPLICATION, _blocking=False)

    def gone(self) -> bool:
        """Whether it has ended."""
        return not self.started or APPLICATION not in ray_serve.status().applications


def start_search(settings: GatewaySettings, wait: Wait) -> OwnSearch:
    """Begin to start the search, where there is to be one and none is there yet. `wait`: for one
    that is being deleted. Raises JobError where it does not end."""
    if settings.search is None or runs(APPLICATION, wait):
        return OwnSearch(False)
    target = ray_serve.RunTarget(
        application(settings.search, settings.models), APPLICATION, route_prefix=None
    )
    ray_serve.run_many(
        [target], wait_for_ingress_deployment_creation=False, wait_for_applications_running=False
    )
    return OwnSearch(True)
