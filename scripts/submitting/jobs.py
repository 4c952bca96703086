"""The jobs of a cluster, through the API of its head.

Invariant: whatever goes wrong between here and the head leaves as a JobError that says what to do;
the cluster's token is sent only to a head that asks for one, and shown nowhere.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import httpx

from job.errors import JobError, StoppedEarly, UsageError
from job.printable import printable

CONNECT_SECONDS = 15.0
LOOK_SECONDS = 0.5
"""Between two looks at a job that is about to end."""
STOP_SECONDS = 600
"""What a stopped run is given to write its partial report. Ray kills after 3 s otherwise."""
LOST_LOOKS = 5
"""Times in a row that the log may break off without a new line before we give up."""
_ADDRESSES = ("RAY_API_SERVER_ADDRESS", "RAY_ADDRESS")
"""Ray lets these win over the address it is given."""
_CHATTY = ("ray.dashboard.modules.job.sdk", "ray.dashboard.modules.dashboard_sdk")
"""Loggers that tell of every request."""
_TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a job ended. `code`: the exit code of its command; `why`: for a job that has none."""

    code: int
    why: str | None = None


class Jobs:
    """The jobs API at `address`. Raises UsageError where no cluster answers there."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        self._shown: dict[str, int] = {}
        _reach(self.address)
        for name in _ADDRESSES:
            os.environ.pop(name, None)
        from ray.job_submission import JobSubmissionClient

        for name in _CHATTY:
            logging.getLogger(name).setLevel(logging.ERROR)
        with self._told():
            self._client = JobSubmissionClient(self.address)

    def submit(self, entrypoint: str, archive: Path | str, metadata: Mapping[str, str]) -> str:
        """Send a command and the archive it runs in (a path, or the URI of one that is there
        already); the job's id."""
        environment = {
            "working_dir": str(archive),
            "env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": str(STOP_SECONDS)},
        }
        with self._told():
            return str(
                self._client.submit_job(
                    entrypoint=entrypoint, runtime_env=environment, metadata=dict(metadata)
                )
            )

    def info(self, job: str) -> Any:
        """What the cluster knows of a job: status, metadata, exit code."""
        with self._told():
            return self._client.get_job_info(job)

    def stop(self, job: str) -> None:
        """Ask a job to end in order; returns at once."""
        with self._told():
            self._client.stop_job(job)

    def log(self, job: str) -> str:
        """Everything a job has written."""
        with self._told():
            return str(self._client.get_job_logs(job))

    def forget(self, job: str) -> None:
        """Take a finished job off the cluster's list."""
        with self._told():
            self._client.delete_job(job)

    def follow(self, job: str, show: Callable[[str], object]) -> Ended:
        """Show what the job writes, as it writes it, until it has ended; what an earlier call has
        shown is not shown again."""
        with self._told():
            return asyncio.run(self._follow(job, show))

    async def _follow(self, job: str, show: Callable[[str], object]) -> Ended:
        lost = 0
        while True:
            told, shown = 0, self._shown.get(job, 0)
            try:
                async for text in self._client.tail_job_logs(job):
                    # A log that is opened again starts from its beginning.
                    new = text[max(0, shown - told) :]
                    told += len(text)
                    if new:
                        show(new)
                        self._shown[job], lost = told, 0
            except (RuntimeError, OSError, aiohttp.ClientError) as error:
                lost += 1
                if lost == LOST_LOOKS:
                    raise JobError(f"the log of {job} broke off: {_line(error)}") from error
            ended = ended_as(self._client.get_job_info(job))
            if ended is not None:
                return ended
            await asyncio.sleep(LOOK_SECONDS)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Foreign errors as ours."""
        from ray.exceptions import AuthenticationError

        try:
            yield
        except AuthenticationError as error:
            raise UsageError(
                f"the cluster at {self.address} wants another token than the one found here: see "
                "RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH and ~/.ray/auth_token"
            ) from error
        except OSError as error:  # Errors of requests, which Ray's client uses, are such.
            raise JobError(f"the cluster at {self.address} is gone: {_line(error)}") from error
        except (RuntimeError, ValueError) as error:
            raise JobError(f"the cluster at {self.address} refused: {_line(error)}") from error


def ended_as(info: Any) -> Ended | None:
    """How a job ended, from what the cluster says of it; None while it goes on."""
    status = str(getattr(info.status, "value", info.status))
    if status == "SUCCEEDED":
        return Ended(0)
    if status == "STOPPED":
        return Ended(StoppedEarly.exit_code, "the job was stopped")
    if status != "FAILED":
        return None
    code = info.driver_exit_code
    if code is not None and 0 < code < 128:
        return Ended(code)
    if code is not None:
        return Ended(1, f"the command was killed (exit status {code})")
    return Ended(1, f"the job did not start: {_line(info.message or 'the cluster says no more')}")


def _reach(address: str) -> None:
    """See that a head answers at `address`, and make ready for its token if it wants one."""
    if not address.startswith(("http://", "https://")):
        raise UsageError(f"--address {address}: use http://HOST:PORT, as `ray dashboard` shows it")
    try:
        answer = httpx.get(f"{address}/api/version", timeout=CONNECT_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise UsageError(
            f"no cluster answers at {address}: {_line(error)}. Is it up, and is its port forwarded "
            "(`ray dashboard cluster.yaml`)?"
        ) from error
    if answer.status_code in (401, 403):
        _prepare_token(address)
    elif answer.status_code != 200 or "ray_version" not in answer.text:
        raise UsageError(f"what answers at {address} is no Ray cluster ({answer.status_code})")


def _prepare_token(address: str) -> None:
    """Ray's own client finds the token, once it is told to look."""
    default = Path.home() / ".ray" / "auth_token"
    if not any(os.environ.get(name) for name in _TOKENS) and not default.is_file():
        raise UsageError(
            f"the cluster at {address} asks for its token: put it into ~/.ray/auth_token, or name "
            "its file in RAY_AUTH_TOKEN_PATH"
        )
    os.environ["RAY_AUTH_MODE"] = "token"


def _line(error: object) -> str:
    """The words of an error, on one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return printable(text[:600])
