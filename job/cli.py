"""The command `fupan`: commands, flags, exit codes.

Invariant: this is the one place where an error becomes an exit code (0 complete, 2 wrong usage,
configuration or key, 4 stopped early, 3 more failed than allowed, 1 anything else), and where
anything is printed. What is slow to import, as Ray is, is imported by the commands that need it.
"""

from __future__ import annotations

import functools
import io
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich.console import Console

from job.commands.answers_command import answers
from job.commands.check_command import check
from job.commands.compare_command import compare
from job.commands.job_options import takes_job_options
from job.commands.keys_command import keys
from job.commands.known_command import known
from job.commands.report_command import report
from job.commands.serve_command import serve_gateway
from job.commands.show_command import show
from job.commands.simulate import simulate
from job.errors import StoppedEarly
from job.flags import Flags
from job.printable import printable

if TYPE_CHECKING:
    from job.config import Settings

app = typer.Typer(
    name="fupan",
    help=(
        "Read a day of logs, conversations and feedback, ask a language model about every record "
        "in packed calls, and write a retrospective in which code does the counting.\n\n"
        "\b\n"
        "    fupan run logs/ --out retro/     # no key, no network: the built-in analyst\n"
        "    fupan run --help                 # with a model\n\n"
        "Exit codes: 0 complete, 2 wrong usage, configuration or key, 3 more records failed than "
        "--max-failed allows, 4 stopped early (the same command goes on), 1 anything else."
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"fupan {version('fupan')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    del version


@app.command()
@takes_job_options
def run(flags: Flags, quiet: bool, json: bool) -> None:
    """Write the retrospective of INPUTS to a folder.

    Without a provider the built-in analyst is used, which needs no key and no network:

    \b
        fupan run logs/ --out retro/

    With one (the key is read from the environment only):

    \b
        export LLM_API_KEY=...
        fupan run logs/ --out retro/ --base-url https://host/v1 --model NAME --rpm 60

    The same command again goes on where it was stopped and pays for nothing twice. Ctrl-C ends the
    asking and writes a partial report, a second one ends everything.
    """
    with _exit_codes("interrupted; the same command goes on from here"):
        from job.config import resolve

        settings = resolve(flags)
        _say_deadline(settings, quiet or json)
        from job.run import run_job
        from job.show import closing_lines

        finished = run_job(settings, Console(stderr=True), quiet or json)
        if json:
            sys.stdout.write(orjson.dumps(finished.summary()).decode() + "\n")
        elif not quiet:
            for line in closing_lines(finished.report, finished.view, str(finished.page)):
                print(line)
        _warn(finished.warnings)
        if finished.error is not None:
            raise finished.error


@app.command()
@takes_job_options
def plan(
    flags: Flags,
    quiet: bool,
    json: bool,
    show_request: Annotated[
        bool, typer.Option("--show-request", help="Print the first request that would be sent.")
    ] = False,
) -> None:
    """Show what `run` would do, and call nothing.

    The files as they are understood, records, packs, tokens, minutes. Reads everything, on this
    machine, and writes nothing. Takes the options of `run`, so that one
    word changes one into the other; --out, --max-failed and --overwrite decide nothing here.
    """
    with _exit_codes():
        from job.config import resolve

        settings = resolve(flags)
        _say_deadline(settings, quiet or json)
        from job.commands.preview import preview
        from job.commands.preview_lines import preview_lines

        found = preview(settings, Console(stderr=True), quiet or json)
        if json:
            sys.stdout.write(orjson.dumps(found.as_json()).decode() + "\n")
        elif quiet:
            _warn(found.warnings)
        else:
            for line in preview_lines(found, show_request):
                print(line)


@app.command(name="report", help=report.__doc__)
@functools.wraps(report)
def _report(**values: Any) -> None:
    with _exit_codes():
        report(**values)


@app.command(name="check", help=check.__doc__)
@functools.wraps(check)
def _check(**values: Any) -> None:
    with _exit_codes():
        check(**values)


@app.command(name="compare", help=compare.__doc__)
@functools.wraps(compare)
def _compare(**values: Any) -> None:
    with _exit_codes("interrupted; nothing was compared, and the same command begins anew"):
        compare(**values)


@app.command(name="show", help=show.__doc__)
@functools.wraps(show)
def _show(**values: Any) -> None:
    with _exit_codes():
        show(**values)


@app.command(name="known", help=known.__doc__)
@functools.wraps(known)
def _known(**values: Any) -> None:
    with _exit_codes():
        known(**values)


@app.command(name="answers", help=answers.__doc__)
@functools.wraps(answers)
def _answers(**values: Any) -> None:
    with _exit_codes():
        answers(**values)


@app.command(name="keys", help=keys.__doc__)
@functools.wraps(keys)
def _keys(**values: Any) -> None:
    with _exit_codes():
        keys(**values)


@app.command(name="serve", help=serve_gateway.__doc__)
@functools.wraps(serve_gateway)
def _serve(**values: Any) -> None:
    with _exit_codes():
        serve_gateway(**values)


@app.command(name="simulate", help=simulate.__doc__)
@functools.wraps(simulate)
def _simulate(**values: Any) -> None:
    with _exit_codes():
        simulate(**values)


def _say_deadline(settings: Settings, quiet: bool) -> None:
    """Which one was chosen: a time that has just passed is one of tomorrow."""
    at = settings.deadline
    if at is not None and settings.provider is not None and not quiet:
        print(f"deadline: {at:%Y-%m-%d %H:%M:%S} {settings.zone}", file=sys.stderr)


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        print(f"fupan: warning: {printable(warning)}", file=sys.stderr)


@contextmanager
def _exit_codes(interrupted: str = "interrupted") -> Iterator[None]:
    """Turn every error into a line on stderr and an exit code; Ctrl-C into what `interrupted`
    says."""
    try:
        yield
    except KeyboardInterrupt as error:
        print(f"fupan: {interrupted}", file=sys.stderr)
        raise typer.Exit(StoppedEarly.exit_code) from error
    except BrokenPipeError as error:
        raise typer.Exit(1) from error
    except Exception as error:
        from job.boundary import as_job_error

        known = as_job_error(error)
        if known is None:
            raise
        if os.environ.get("FUPAN_TRACEBACK") == "1":
            traceback.print_exc()
        print(f"fupan: {printable(str(known))}", file=sys.stderr)
        raise typer.Exit(known.exit_code) from error


def main() -> None:
    """The entry point of the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character must not end a run.
            stream.reconfigure(errors="backslashreplace")
    app()
