"""Sends this checkout and a run to a Ray cluster, follows it, and brings its report back.

    scripts/submit [--address URL] [--fetch DIR] INPUT... --out DIR [any option of `fupan run`]

The code that runs is the code of this checkout. INPUT and --out must mean something to every node:
a path on storage that all of them see, or a URI; an input may also be a path inside the checkout,
relative to it, and is uploaded then (small ones only). The provider's key is no part of any of
this: each node has it in its own environment (docs/cluster.md).
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from job.boundary import as_job_error
from job.errors import JobError, StoppedEarly, TooManyFailed, UsageError
from job.printable import printable
from scripts.submitting.fetch import check_target, unpack
from scripts.submitting.jobs import Ended, Jobs
from scripts.submitting.remote_run import remote_run

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "http://127.0.0.1:8265"
LEFT_RUNNING = 130
"""Exit code when the job was left to itself: what a command ends with after Ctrl-C."""
_WITH_REPORT = (0, TooManyFailed.exit_code, StoppedEarly.exit_code)
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_OUT = "fupan_out"
"""What the metadata of a job calls the folder of its results."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; its exit code: the run's own, or 130 where the run was left to itself."""
    own, rest = _parser().parse_known_args(arguments)
    caller = Path.cwd()
    os.chdir(ROOT)
    try:
        fetch = None if own.fetch is None else caller / own.fetch
        if fetch is not None:
            check_target(fetch)
        if own.job is not None:
            if rest:
                raise UsageError(f"--job takes a job as it is: {shlex.join(rest)} is too much")
            return _see_to_its_end(Jobs(own.address), own.job, fetch)
        return _send(own, rest, fetch)
    except JobError as error:
        return _told(error)
    except KeyboardInterrupt:
        return _told(StoppedEarly("interrupted; the dashboard shows whether a job was sent"))
    except Exception as error:
        known = as_job_error(error)
        if known is None:
            raise
        return _told(known)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/submit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        epilog=(
            "Exit codes are those of `fupan run`; 1 also where --fetch brought nothing, and 130 "
            "where the job was left running (Ctrl-C)."
        ),
    )
    address = os.environ.get("RAY_API_SERVER_ADDRESS") or ADDRESS
    parser.add_argument(
        "--address", default=address, metavar="URL", help=f"the head's dashboard [{address}]"
    )
    parser.add_argument(
        "--fetch", metavar="DIR", help="bring the report here when the run has ended"
    )
    parser.add_argument(
        "--job", metavar="ID", help="follow a job that was sent before, instead of sending one"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be sent, and send nothing"
    )
    return parser


def _send(own: argparse.Namespace, rest: Sequence[str], fetch: Path | None) -> int:
    run = remote_run(rest, ROOT)
    jobs = None if own.dry_run else Jobs(own.address)
    from scripts.submitting.upload import pack_checkout  # brings Ray, which must know of the token

    with tempfile.TemporaryDirectory(prefix="fupan-submit-") as folder:
        upload = pack_checkout(ROOT, Path(folder))
        upload.check_inputs(run.uploaded)
        for line in upload.lines():
            _say(line)
        _say(f"command: {run.entrypoint}")
        upload.check_size()
        if jobs is None:
            return 0
        job = jobs.submit(run.entrypoint, upload.archive, {_OUT: run.out})
    _say(f"job: {job}")
    return _see_to_its_end(jobs, job, fetch)


def _see_to_its_end(jobs: Jobs, job: str, fetch: Path | None) -> int:
    """Follow the job; Ctrl-C asks whether to stop it or to leave it."""
    stopped = False
    while True:
        try:
            ended = jobs.follow(job, _show)
            break
        except KeyboardInterrupt:
            if stopped or not _wants_to_stop(job):
                _say(f"left running. Follow it with: {_again(jobs, job, fetch)}")
                return LEFT_RUNNING
            stopped = True
            jobs.stop(job)
            _say("stopping: the run writes a partial report; Ctrl-C again leaves it to itself")
        except JobError as error:
            raise JobError(f"{error}. Follow the run with: {_again(jobs, job, fetch)}") from error
    if ended.why is not None:
        _say(ended.why)
    fetched = fetch is None or _fetch(jobs, job, fetch, ended)
    return ended.code or int(not fetched)


def _fetch(jobs: Jobs, job: str, into: Path, ended: Ended) -> bool:
    """Bring what the run left; whether that worked. Where it did not, the reason is said, and how
    to try again."""
    if ended.code not in _WITH_REPORT:
        _say("no report to fetch")
        return False
    try:
        out, archive = _sent(jobs, job)
        carrier = jobs.submit(
            shlex.join(("python", "-m", "scripts.submitting.carry", out)), archive, {}
        )
        carried = jobs.follow(carrier, _nothing)
        if carried.code != 0:
            raise JobError(f"{carried.why or 'the fetching job failed'}; see its log: {carrier}")
        fetched = unpack(jobs.log(carrier), into)
    except (JobError, OSError, KeyboardInterrupt) as error:
        why = as_job_error(error) or "interrupted"
        _say(f"not fetched: {why}. Try again with: {_again(jobs, job, into)}")
        return False
    with suppress(JobError):
        jobs.forget(carrier)
    _say(f"fetched: {fetched.files} files from {out} to {into}")
    for name, size in fetched.left.items():
        _say(f"  {name} ({size / 1e6:,.1f} MB) stayed there")
    return fetched.files > 0


def _sent(jobs: Jobs, job: str) -> tuple[str, str]:
    """Where a job's results are, and the archive it ran in. Raises JobError for a job that was not
    sent by this command."""
    info = jobs.info(job)
    out = (info.metadata or {}).get(_OUT)
    archive = (info.runtime_env or {}).get("working_dir")
    if out is None or archive is None:
        raise JobError(f"{job} is no run that scripts/submit has sent")
    return out, archive


def _again(jobs: Jobs, job: str, fetch: Path | None) -> str:
    """The command that follows a job again."""
    words = ["scripts/submit", "--address", jobs.address, "--job", job]
    return shlex.join(words if fetch is None else [*words, "--fetch", str(fetch)])


def _wants_to_stop(job: str) -> bool:
    if not sys.stdin.isatty():
        return False
    try:
        answer = input(f"\n{job} is still running. [s]top it, or [l]eave it running? [l] ")
    except (EOFError, KeyboardInterrupt):
        return False
    return answer.strip().lower() in ("s", "stop")


def _show(text: str) -> None:
    """A piece of the job's log, without colours and with nothing that moves the cursor of this
    terminal."""
    lines = _COLOUR.sub("", text).split("\n")
    sys.stdout.write("\n".join(printable(line) for line in lines))
    sys.stdout.flush()


def _nothing(text: str) -> None:
    """For a log that nobody reads."""
    del text


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)


def _told(error: JobError) -> int:
    _say(f"scripts/submit: {error}")
    return error.exit_code
