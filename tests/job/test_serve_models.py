"""What `fupan serve` says of its own models while they load, without a cluster."""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from ray.core.generated.common_pb2 import ActorDiedErrorContext
from ray.exceptions import ActorDiedError, OutOfMemoryError, RayTaskError
from ray.serve.schema import ApplicationStatus

from job.commands.serve_models import OwnModels, _slow
from job.ray_reason import reason_in
from serve.embedding.engine import EmbeddingModelError
from serve.models.settings import EmbedderSettings, GeneratorSettings

DEPLOYING, RUNNING = ApplicationStatus.DEPLOYING, ApplicationStatus.RUNNING
FAILED = ApplicationStatus.DEPLOY_FAILED
TIMES = "The deployment failed to start 3 times in a row. See controller logs for details. Error:\n"
RETRIED = "A replica failed to start with exception. Retrying 2 more time(s). Error:\n"


def as_ray_says(error: Exception) -> str:
    """What Ray Serve's controller knows of an error that was raised in a replica."""
    try:
        try:
            raise OSError("the library's own\nlast line: of many")
        except OSError as cause:
            raise error from cause
    except Exception:
        told = RayTaskError("Model.initialize()", traceback.format_exc(), error)
        return str(told.as_instanceof_cause())


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (EmbeddingModelError("model 'm' cannot be loaded: no"), "model 'm' cannot be loaded: no"),
        (EmbeddingModelError("first: of\nmany\n\nlines: last"), "first: of many lines: last"),
        (KeyError("rope"), "KeyError: 'rope'"),
        (RuntimeError("x" * 5_000), "RuntimeError: xxx"),
    ],
)
def test_the_whole_reason_is_told_in_one_line_without_its_traceback(
    error: Exception, expected: str
) -> None:
    told = reason_in(TIMES + as_ray_says(error))
    assert told.startswith(expected)
    assert "\n" not in told
    assert len(told) < 700


@pytest.mark.parametrize("text", [repr, str])
def test_a_process_that_died_is_probably_short_of_memory(text: Callable[[object], str]) -> None:
    context = ActorDiedErrorContext(
        error_message="Worker exit detail: killed by SIGKILL.", actor_id=bytes(16), pid=9
    )
    told = reason_in(TIMES + text(ActorDiedError(context)))
    assert "the machine has too little memory for it: choose a smaller model" in told
    assert told.endswith("(killed by SIGKILL.)")


@pytest.mark.parametrize("text", [repr, str])
def test_what_ray_ended_for_want_of_memory_says_so(text: Callable[[object], str]) -> None:
    error = OutOfMemoryError("Task was killed due to the node running low on memory.")
    told = reason_in(TIMES + text(error))
    assert told.startswith("its process ended while it was loading")


class CudaError(RuntimeError):
    """torch's, which is not imported here."""


CudaError.__module__, CudaError.__qualname__ = "torch", "OutOfMemoryError"


@pytest.mark.parametrize(
    "error", [CudaError("CUDA out of memory. Tried to allocate 20 GiB."), MemoryError()]
)
def test_what_found_no_memory_did_not_end_its_process(error: Exception) -> None:
    told = reason_in(TIMES + as_ray_says(error))
    assert told.startswith("it does not fit into memory (")
    assert "choose a smaller model" in told
    assert "ended" not in told


def test_what_our_own_error_says_is_said_as_it_is() -> None:
    reason = "it does not fit into memory (CUDA out of memory): choose a smaller model"
    assert reason_in(TIMES + as_ray_says(EmbeddingModelError(reason))) == reason


def test_lines_that_a_traceback_repeats_are_no_reason() -> None:
    def deeper() -> None:
        deeper()

    try:
        deeper()
    except RecursionError:
        told = reason_in(TIMES + traceback.format_exc())
    assert told.startswith("RecursionError: ")


@pytest.mark.parametrize("told", ["", TIMES])
def test_where_no_reason_is_known_the_log_is_named(told: str) -> None:
    assert "the log of its process may have one" in reason_in(told) or told == TIMES
    assert reason_in("only this is known") == "only this is known"


def found(status: ApplicationStatus, message: str = "") -> Any:
    """An application, as Ray Serve knows it."""
    return SimpleNamespace(
        status=status, message="", deployments={"Model": SimpleNamespace(message=message)}
    )


def said(states: list[Mapping[str, Any]], **slow: str) -> list[str]:
    """What is said of models whose states these are, every five seconds; the last one stays."""
    names = sorted({name for state in states for name in state})
    models = OwnModels({}, {name: name for name in names}, slow)
    seconds = itertools.count(step=5)
    looks = itertools.chain(states, itertools.repeat(states[-1]))
    return list(models.loading(lambda: next(looks), lambda: float(next(seconds)), lambda _: None))


def test_what_loads_at_once_is_said_and_no_more() -> None:
    assert said([{"a": found(RUNNING)}]) == ["a: loaded"]


def test_what_takes_long_is_said_ever_more_rarely_and_why() -> None:
    loading = {"a": found(DEPLOYING), "b": found(RUNNING)}
    lines = said([*[loading] * 10, {"a": found(RUNNING)}], a=": it is converted")
    assert lines == [
        "b: loaded",
        "a: still loading after 10 s: it is converted",
        "a: still loading after 20 s",
        "a: still loading after 40 s",
        "a: loaded",
    ]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (RETRIED + as_ray_says(EmbeddingModelError("no m")), ", and it failed at first: no m"),
        (
            "1 replicas that have taken more than 30s to be scheduled. Resources required for each "
            'replica: {"CPU": 64.0}, total resources available: {"CPU": 2.0}.',
            ': no node has room for it. Resources required for each replica: {"CPU": 64.0}, total '
            'resources available: {"CPU": 2.0}.',
        ),
    ],
)
def test_what_ray_serve_knows_of_the_delay_is_said(message: str, expected: str) -> None:
    loading = {"a": found(DEPLOYING, message)}
    lines = said([*[loading] * 3, {"a": found(RUNNING)}], a=": it is converted")
    assert lines == [f"a: still loading after 10 s{expected}", "a: loaded"]


def test_what_cannot_be_loaded_and_what_was_deleted_is_said() -> None:
    failed = found(FAILED, TIMES + as_ray_says(EmbeddingModelError("no such model: x")))
    assert said([{"a": failed, "b": found(DEPLOYING)}, {"a": failed}]) == [
        "a: cannot be loaded, and is answered for with 503: no such model: x",
        "b: was deleted",
    ]


def test_a_reason_is_said_once_and_another_as_well() -> None:
    def retried(why: str) -> Mapping[str, Any]:
        return {"a": found(DEPLOYING, RETRIED + as_ray_says(EmbeddingModelError(why)))}

    failed = {"a": found(FAILED, TIMES + as_ray_says(EmbeddingModelError("no n")))}
    assert said([*[retried("no m")] * 6, *[retried("no n")] * 4, failed]) == [
        "a: still loading after 10 s, and it failed at first: no m",
        "a: still loading after 20 s",
        "a: still loading after 40 s, and it failed at first: no n",
        "a: cannot be loaded, and is answered for with 503, for the reason above",
    ]


def test_a_file_that_is_converted_is_named() -> None:
    assert _slow(GeneratorSettings(generator="models/small.gguf")).startswith(": small.gguf is con")
    assert "GGUF" in _slow(GeneratorSettings(generator="smollm2-135m"))
    assert _slow(GeneratorSettings(generator="some/model")) == ""
    assert _slow(EmbedderSettings(embedder="bundled")) == ""
