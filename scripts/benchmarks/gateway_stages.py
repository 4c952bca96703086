"""Where the processor time of one request goes: the stacks of a process, looked at a thousand times
a second while a file says so.

Invariant: nothing is looked at, and nothing in the process is changed, while the file is not there.
A sample belongs to the innermost frame whose file has a stage; what has none counts as its caller.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import orjson

FOLDER_VARIABLE = "FUPAN_BENCH_STAGES"
"""The folder in which the samples of each process are left."""
_GO = "go"
_LOOK_SECONDS = 0.2
_EVERY_SECONDS = 0.001
_SWITCH_SECONDS = 0.0001
"""How soon a thread gives way to the one that looks; by default it goes on for 5 ms, or until it
reads or writes, where most samples would then fall."""

_STAGES = (
    ("/serve/gateway/keys.py", "key and its limits"),
    ("/serve/gateway/meter", "key and its limits"),
    ("/serve/gateway/share.py", "key and its limits"),
    ("/serve/gateway/slice", "key and its limits"),
    ("/serve/gateway/admission.py", "admission"),
    ("/serve/gateway/recall.py", "caches and single flight"),
    ("/serve/gateway/flight", "caches and single flight"),
    ("/serve/cache/", "caches and single flight"),
    ("/serve/gateway/names.py", "names and routing"),
    ("/serve/ask/route.py", "names and routing"),
    ("/serve/ask/tokens.py", "counting tokens"),
    ("/serve/gateway/gate.py", "permits and prices"),
    ("/serve/gateway/upstream.py", "asking the provider"),
    ("/serve/gateway/one_provider.py", "asking the provider"),
    ("/serve/gateway/outgoing.py", "asking the provider"),
    ("/serve/gateway/attempt", "asking the provider"),
    ("/serve/gateway/connection.py", "asking the provider"),
    ("/serve/gateway/whole.py", "asking the provider"),
    ("/serve/ask/", "permits and prices"),
    ("/serve/metrics", "metrics"),
    ("/prometheus_client/", "metrics"),
    ("/opentelemetry/", "metrics"),
    ("/serve/gateway/app", "routes and answers"),
    ("/serve/gateway/", "parsing, headers, the flow"),
    ("/aiohttp/", "asking the provider"),
    ("/fastapi/", "FastAPI and Starlette"),
    ("/starlette/", "FastAPI and Starlette"),
    ("/uvicorn/", "HTTP server"),
    ("/httptools/", "HTTP server"),
    ("/h11/", "HTTP server"),
    ("/site-packages/ray/serve/", "Ray Serve"),
    ("/site-packages/ray/", "Ray"),
)
"""Part of a file's path -> stage; the first that fits."""


def stage_of(file: str) -> str | None:
    """The stage of the code in a file; None: that of whoever calls it."""
    return next((stage for part, stage in _STAGES if part in file), None)


def _stage_of_stack(frame: FrameType | None) -> str | None:
    while frame is not None:
        stage = stage_of(frame.f_code.co_filename)
        if stage is not None:
            return stage
        frame = frame.f_back
    return None


@contextmanager
def sampling(folder: Path) -> Iterator[None]:
    """Every process that is ready to looks at its stacks during the block, and has left what it saw
    when the block is over."""
    go = folder / _GO
    go.touch()
    time.sleep(2 * _LOOK_SECONDS)
    try:
        yield
    finally:
        go.unlink()
        time.sleep(4 * _LOOK_SECONDS)


def samples_of(folder: Path, pid: int) -> dict[str, int]:
    """What the process saw: stage -> samples; nothing where it was not ready to."""
    file = folder / f"{pid}.json"
    return dict(orjson.loads(file.read_bytes())) if file.exists() else {}


def begin() -> None:
    """Be ready to sample in this process; a hook for the workers of a Ray cluster."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        threading.Thread(target=_wait, args=(Path(folder),), daemon=True).start()


def _wait(folder: Path) -> None:
    go = folder / _GO
    while True:
        if go.exists():
            before = sys.getswitchinterval()
            sys.setswitchinterval(_SWITCH_SECONDS)
            samples = _sample(go)
            sys.setswitchinterval(before)
            written = folder / f"{os.getpid()}.new"
            written.write_bytes(orjson.dumps(samples))
            written.rename(folder / f"{os.getpid()}.json")
        time.sleep(_LOOK_SECONDS)


def _sample(go: Path) -> dict[str, int]:
    """Samples by stage until `go` is gone, of all threads but this one that do not wait."""
    samples: Counter[str] = Counter()
    own = threading.get_ident()
    for _ in _ticks(go):
        for thread, frame in sys._current_frames().items():
            if thread != own and not _idle(frame):
                samples[_stage_of_stack(frame) or "other"] += 1
    return dict(samples)


def _ticks(go: Path) -> Iterator[None]:
    while go.exists():
        for _ in range(100):
            time.sleep(_EVERY_SECONDS)
            yield


_WAITING = frozenset({"select", "wait", "poll", "sleep", "accept", "_worker", "main_loop"})
_LOOPS = frozenset({"run_forever", "run_until_complete", "run", "_bootstrap_inner"})


def _idle(frame: FrameType) -> bool:
    """Whether the thread waits: it stands in what waits for events, or runs a loop whose own code
    is not Python (uvloop) and nothing in it."""
    name = frame.f_code.co_name
    return name in _WAITING or (name in _LOOPS and stage_of(frame.f_code.co_filename) is None)
