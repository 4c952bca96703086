"""What the user typed -> the command that means the same on the cluster.

Invariant: what depends on this machine (its time zone, what "yesterday" is, paths below the
checkout) is said in full; what cannot mean the same there is refused before anything is sent.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from job import cli
from job.config import Settings, resolve
from job.config_file import CONFIG_FILE, load_config
from job.errors import InputError, UsageError
from job.flags import Flags
from job.history.baseline import AUTO
from job.storage.place import Place


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """A run as the cluster is to carry it out. `out`: where its results will be, as the nodes see
    it. `uploaded`: inputs and files of settings that travel with the checkout, relative to it."""

    arguments: tuple[str, ...]
    out: str
    uploaded: tuple[str, ...]

    @property
    def entrypoint(self) -> str:
        """The command line of the job."""
        return shlex.join(("python", "-m", "job", "run", *self.arguments))


def remote_run(arguments: Sequence[str], root: Path) -> RemoteRun:
    """`arguments` of `fupan run` for the cluster; the working directory is `root`, the checkout.

    Raises UsageError for what `fupan run` would refuse, and for paths that the nodes cannot see.
    """
    flags = _flags(arguments)
    settings = resolve(flags)
    named = flags.out or load_config(flags.config).run.out
    if named is None:
        raise UsageError("no --out: name an absolute path that all nodes see, or a URI")
    _everywhere(named, "--out")
    out = settings.out.uri
    if flags.answers is not None and settings.redis is None:
        _everywhere(flags.answers, "--answers")
    if settings.baseline not in (None, AUTO):
        _everywhere(str(settings.baseline), "--baseline")
    for flag, path in (("--config", flags.config), ("--instructions", _instructions(flags))):
        if path is not None and not _relative_inside(path, root):
            raise UsageError(
                f"{flag} {path}: only the checkout is uploaded; name a file in it, relative to it"
            )
    said = list(arguments)
    if flags.out is None or "{date}" in flags.out:
        said += ["--out", out]
    if flags.timezone is None:
        said += ["--timezone", str(settings.zone)]
    if settings.explicit_date is not None:
        said += ["--date", settings.explicit_date.isoformat()]
    uploaded = (*_relative_inputs(settings, root), *_settings_files(flags, settings, root))
    return RemoteRun(tuple(said), out, uploaded)


def _instructions(flags: Flags) -> str | None:
    return flags.instructions or load_config(flags.config).run.instructions


def _flags(arguments: Sequence[str]) -> Flags:
    command = typer.main.get_command(cli.app)
    if not isinstance(command, TyperGroup):
        raise TypeError("fupan has no commands")
    try:
        context = command.commands["run"].make_context("fupan run", list(arguments))
    except TyperException as error:
        raise UsageError(str(error)) from error
    return Flags.from_command(context.params)


def _everywhere(path: str, flag: str) -> None:
    """Raise UsageError for a path that means something here only, or a URI that holds a secret:
    the command line of a job can be read by all who see the cluster."""
    if not _absolute(path):
        raise UsageError(
            f"{flag} {path}: the nodes run in a copy of the checkout that is removed after the "
            "run. Name an absolute path that all nodes see, or a URI"
        )
    Place.of(path)


def _absolute(path: str) -> bool:
    return "://" in path or path.startswith("/")


def _relative_inside(path: str, root: Path) -> bool:
    return not _absolute(path) and (root / path).resolve().is_relative_to(root)


def _relative_inputs(settings: Settings, root: Path) -> tuple[str, ...]:
    """The inputs that are uploaded. Raises InputError for one that is relative and not there."""
    found = []
    for spec in settings.inputs:
        if _absolute(spec.path):
            _everywhere(spec.path, "the input")
            continue
        plain = os.path.normpath(spec.path)
        if not _relative_inside(plain, root):
            raise InputError(
                f"{spec.path} is outside the checkout and is not uploaded: name an absolute path "
                "that all nodes see, or a URI"
            )
        found.append(plain)
    return tuple(found)


def _settings_files(flags: Flags, settings: Settings, root: Path) -> Iterator[str]:
    """What the run was told in files of the checkout: without them it would be another run."""
    config = flags.config or CONFIG_FILE
    if (root / config).exists():
        yield os.path.normpath(config)
    if instructions := _instructions(flags):
        yield os.path.normpath(instructions)
    if settings.known is not None and settings.known.is_relative_to(root):
        yield str(settings.known.relative_to(root))
