"""The cluster's own models, for as long as `fupan serve` runs.

Invariant: only applications that it started itself are ever deleted; a model that cannot be loaded
is said, with the reason, and takes nothing else along.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ray import serve as ray_serve
from ray.serve.schema import ApplicationStatus

from job.commands.serve_apps import Wait, runs
from serve.gateway.settings import GatewaySettings
from serve.models.app import placement, targets
from serve.models.calls import APPLICATION

PAUSE = 0.5
"""Seconds between two looks at how models are doing."""
THERE = "runs in this cluster already, and is left as it is"


@dataclass(frozen=True)
class OwnModels:
    """`said`: where each entry of `models` runs, by name; `started`: the applications that are
    ours, by name."""

    said: dict[str, str]
    started: dict[str, str]

    def delete(self) -> None:
        """Begin to end those that were started here."""
        for application in self.started.values():
            ray_serve.delete(application, _blocking=False)

    def gone(self) -> bool:
        """Whether they have ended."""
        there = ray_serve.status().applications
        return not any(each in there for each in self.started.values())

    def loading(self) -> Iterator[str]:
        """What becomes of each, in a line, as soon as it is known."""
        left = dict(self.started)
        while left:
            applications = ray_serve.status().applications
            for name, application in list(left.items()):
                found = applications.get(application)
                if found is None or found.status in _SETTLED:
                    del left[name]
                    yield f"{name}: {_outcome(found)}"
            time.sleep(PAUSE)


_SETTLED = (
    ApplicationStatus.RUNNING,
    ApplicationStatus.DEPLOY_FAILED,
    ApplicationStatus.UNHEALTHY,
)


def start_models(settings: GatewaySettings, wait: Wait) -> OwnModels:
    """Begin to load the models that no application of this cluster serves yet. `wait`: for one that
    is being deleted. Raises JobError where it does not end."""
    said, started, new = {}, {}, {}
    for name, entry in settings.models.items():
        application = APPLICATION.format(name)
        if runs(application, wait):
            said[name] = THERE
            continue
        new[name] = placement(entry)
        said[name] = new[name].said
        started[name] = application
    if new:
        ray_serve.run_many(
            targets(settings, new),
            wait_for_ingress_deployment_creation=False,
            wait_for_applications_running=False,
        )
    return OwnModels(said, started)


def _outcome(found: Any) -> str:
    if found is None:
        return "was deleted"
    if found.status == ApplicationStatus.RUNNING:
        return "loaded"
    told = "".join(each.message for each in found.deployments.values()) or found.message
    return f"cannot be loaded, and is answered for with 503: {reason_in(told)}"


def reason_in(told: str) -> str:
    """Of what Ray Serve knows of a deployment, the replica's own error: the last line, without the
    class of the error."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    kind, _, what = (lines or ["no reason is known"])[-1].partition(": ")
    return what or kind
