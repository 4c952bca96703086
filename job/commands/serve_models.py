"""The cluster's own models, for as long as `fupan serve` runs.

Invariant: only applications that it started itself are ever deleted; a model that cannot be loaded
is said, with the reason, and takes nothing else along; one that takes long to load is said, too.
The same reason is said once of each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ray import serve as ray_serve
from ray.serve.schema import ApplicationStatus

from job.commands.serve_apps import Wait, runs
from job.ray_reason import ERROR, reason_in
from serve.gateway.settings import GatewaySettings
from serve.models.app import placement, targets
from serve.models.calls import APPLICATION
from serve.models.files import GGUF
from serve.models.settings import SMOLLM, Entry, GeneratorSettings
from serve.models.weights import one_line

PAUSE = 0.5
"""Seconds between two looks at how models are doing."""
SAID_AFTER = 10.0
"""Seconds after which it is said that a model is still loading; then after twice as many, and so
on."""
THERE = "runs in this cluster already, and is left as it is"

Applications = Mapping[str, Any]
"""Those of Ray Serve, by name."""


def _look() -> Applications:
    found: Applications = ray_serve.status().applications
    return found


@dataclass(frozen=True)
class OwnModels:
    """`said`: where each entry of `models` runs, by name; `started`: the applications that are
    ours, by name; `slow`: what it is that may take long, by name."""

    said: dict[str, str]
    started: dict[str, str]
    slow: dict[str, str] = field(default_factory=dict)

    def delete(self) -> None:
        """Begin to end those that were started here."""
        for application in self.started.values():
            ray_serve.delete(application, _blocking=False)

    def gone(self) -> bool:
        """Whether they have ended."""
        there = _look()
        return not any(each in there for each in self.started.values())

    def loading(
        self,
        look: Callable[[], Applications] = _look,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[str]:
        """What becomes of each, in a line, as soon as it is known, and that it is not known yet."""
        left, began, due = dict(self.started), clock(), SAID_AFTER
        reasons: dict[str, str] = {}
        while left:
            applications = look()
            for name, application in list(left.items()):
                found = applications.get(application)
                if found is None or found.status in _SETTLED:
                    del left[name]
                    yield f"{name}: {_outcome(found, reasons.get(name, ''))}"
            if clock() - began >= due:
                for name, application in left.items():
                    why = _delay(applications[application]) or self.slow.get(name, "")
                    again = why == reasons.get(name)
                    yield f"{name}: still loading after {due:.0f} s{'' if again else why}"
                    reasons[name] = why
                due *= 2
            sleep(PAUSE)


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
    return OwnModels(said, started, {name: _slow(settings.models[name]) for name in started})


def _slow(entry: Entry) -> str:
    """What it is about `entry` that may take long."""
    generator = entry.generator if isinstance(entry, GeneratorSettings) else ""
    if generator != SMOLLM and Path(generator).suffix != GGUF:
        return ""
    file = "its GGUF file" if generator == SMOLLM else Path(generator).name
    return f": {file} is converted once, which takes a minute or more"


def _outcome(found: Any, said: str) -> str:
    """`said`: why it was not loaded yet, the last time that this was told."""
    if found is None:
        return "was deleted"
    if found.status == ApplicationStatus.RUNNING:
        return "loaded"
    reason = reason_in(_told(found))
    told = ", for the reason above" if reason in said else f": {reason}"
    return f"cannot be loaded, and is answered for with 503{told}"


def _told(found: Any) -> str:
    return "".join(each.message for each in found.deployments.values()) or str(found.message)


def _delay(found: Any) -> str:
    """Why a model is not loaded yet, where Ray Serve knows."""
    told = _told(found)
    if ERROR in told:
        return f", and it failed at first: {reason_in(told)}"
    if (needs := told.find(_NEEDS)) >= 0:
        return f": no node has room for it. {one_line(told[needs:])}"
    return ""


_NEEDS = "Resources required"
"""Of what Ray Serve says: what comes before that which a replica that has no place waits for."""
