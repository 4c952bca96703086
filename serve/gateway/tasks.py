"""What a caller gets that names its task in `x-fupan-task`. Pure.

Invariant: a task fills in what the caller left open and overrides nothing that it said.
"""

from __future__ import annotations

from collections.abc import Mapping

from serve.gateway.contract import Task
from serve.gateway.errors import BadRequest
from serve.gateway.settings import TaskSettings

TASK_HEADER = "x-fupan-task"


def tasks_of(settings: Mapping[str, TaskSettings]) -> dict[str, Task]:
    """The tasks that can be named."""
    return {name: Task(name, one.max_tokens, one.timeout) for name, one in settings.items()}


def task_named(name: str | None, tasks: Mapping[str, Task]) -> Task | None:
    """The task of that name; None where no task is named. Raises BadRequest for an unknown one."""
    if name is None:
        return None
    task = tasks.get(name)
    if task is None:
        known = ", ".join(tasks) or "none"
        raise BadRequest(
            f"Unknown task in '{TASK_HEADER}'. Known are: {known}.",
            param=TASK_HEADER,
            code="unknown_task",
        )
    return task
