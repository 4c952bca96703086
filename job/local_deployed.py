"""Whether a deployment of the cluster answers for a generator. Imports Ray Serve."""

from __future__ import annotations

from typing import Any

from ray import serve as ray_serve
from ray.serve.schema import ApplicationStatus

from serve.models.calls import APPLICATION
from serve.models.deployed import can_answer

_FAILED = (ApplicationStatus.DEPLOY_FAILED, ApplicationStatus.UNHEALTHY)


def is_deployed(entry: str) -> bool:
    """Whether a run asks the application of `entry`, in a cluster where Ray Serve runs."""
    return answers(ray_serve.status().applications.get(APPLICATION.format(entry)))


def answers(application: Any) -> bool:
    """Whether a run asks `application` (Ray Serve's ApplicationStatusOverview, None where there is
    none): it has a replica, or starts one now, or does when it is asked. Where it failed to start,
    or is being deleted, the run holds the model itself."""
    if application is None or application.status == ApplicationStatus.DELETING:
        return False
    return application.status not in _FAILED or can_answer(application)
