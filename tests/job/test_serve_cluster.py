"""How the gateway ends, without a cluster."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from ray.serve.schema import ApplicationStatus

from job.commands.serve_apps import end, runs, wait_until_gone
from job.commands.serve_cluster import in_flight
from job.errors import JobError
from tests.serve.gateway_world import gateway_world


def test_what_takes_longer_than_rays_minute_is_waited_for() -> None:
    now = itertools.count(step=20)
    left = iter([False, False, False, False, True])
    wait_until_gone("it", lambda: next(left), 165, lambda: next(now), lambda _: None)
    assert next(now) > 60
    assert next(left, None) is None


def test_what_never_ends_is_told() -> None:
    now = itertools.count(step=20)
    with pytest.raises(JobError, match="within 165 s"):
        wait_until_gone("it", lambda: False, 165, lambda: next(now), lambda _: None)


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


class Part:
    """An application that ends when it is waited for. `told`: what happens to all, in order."""

    def __init__(self, name: str, told: list[str], error: BaseException | None = None) -> None:
        self.name = name
        self.told = told
        self.error = error

    def delete(self) -> None:
        """See `Own`."""
        self.told.append(f"delete {self.name}")
        if self.error is not None:
            raise self.error

    def gone(self) -> bool:
        """See `Own`."""
        self.told.append(f"gone {self.name}")
        return True


def at_once(what: str, gone: Callable[[], bool]) -> None:
    assert gone(), what


def test_what_the_gateway_asks_ends_after_it() -> None:
    told: list[str] = []
    asked = [Part("models", told), Part("search", told)]
    end(Part("gateway", told), asked, at_once)
    assert told[:2] == ["delete gateway", "gone gateway"]
    assert set(told[2:4]) == {"delete models", "delete search"}
    assert told[4:] == ["gone models", "gone search"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), JobError("it did not end")])
def test_all_are_deleted_and_none_waited_for_where_the_first_is_not_any_more(
    error: BaseException,
) -> None:
    def wait(what: str, gone: Callable[[], bool]) -> None:
        raise error

    told: list[str] = []
    failing = Part("search", told, RuntimeError("the controller is gone"))
    with pytest.raises((type(error), RuntimeError)):
        end(Part("gateway", told), [Part("models", told), failing], wait)
    assert sorted(told) == ["delete gateway", "delete models", "delete search"]


def application(status: ApplicationStatus, running: int = 0) -> Any:
    """As Ray Serve tells of it."""
    deployments = {"Model": SimpleNamespace(replica_states={"RUNNING": running})}
    return SimpleNamespace(status=status, deployments=deployments)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ([None], False),
        ([application(ApplicationStatus.RUNNING, 1)], True),
        ([application(ApplicationStatus.DEPLOYING)], True),
        ([application(ApplicationStatus.DEPLOY_FAILED)], False),
        ([application(ApplicationStatus.DEPLOY_FAILED, 1)], True),
        ([application(ApplicationStatus.DELETING, 1), None, None], False),
        # Somebody else was faster.
        (
            [
                application(ApplicationStatus.DELETING),
                *[application(ApplicationStatus.RUNNING)] * 2,
            ],
            True,
        ),
    ],
)
def test_only_what_runs_or_starts_is_left_as_it_is(seen: list[Any], expected: bool) -> None:
    left = iter(seen)
    assert runs("fupan-model-m", at_once, lambda _: next(left)) == expected
    assert next(left, "all") == "all"
