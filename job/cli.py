"""The command `fupan`: commands, flags, exit codes.

Invariant: this is the one place where an error becomes an exit code (0 complete, 2 wrong usage,
configuration or key, 4 stopped early, 3 more failed than allowed, 1 anything else), and where
anything is printed. Modules that import Ray are imported by the commands that need them.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
import typer
from rich.console import Console

from job.config import Flags, Settings, resolve
from job.errors import JobError, UsageError
from job.simulate import simulate

app = typer.Typer(
    name="fupan",
    help=(
        "Read a day of logs, conversations and feedback, ask a language model about every record "
        "in packed calls, and write a retrospective in which code does the counting."
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

_PROVIDER = "Provider"
_LIMITS = "Limits"
_INPUT = "Input"
_OUTPUT = "Output"

Inputs = Annotated[
    list[str] | None,
    typer.Argument(help="Files, folders or globs. Default: the inputs of fupan.yaml."),
]
Out = Annotated[
    str | None,
    typer.Option(help="Folder of the results. [default: retro]", rich_help_panel=_OUTPUT),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="OpenAI-compatible API, such as https://host/v1.", rich_help_panel=_PROVIDER),
]
Model = Annotated[str | None, typer.Option(help="Model to ask.", rich_help_panel=_PROVIDER)]
ApiKeyEnv = Annotated[
    str | None,
    typer.Option(
        help="Environment variable that holds the key. [default: LLM_API_KEY]",
        rich_help_panel=_PROVIDER,
    ),
]
ProviderName = Annotated[
    str | None,
    typer.Option(
        "--provider",
        help="extractive (built in, no model), openai, or a name of fupan.yaml, also NAME/MODEL.",
        rich_help_panel=_PROVIDER,
    ),
]
Mode = Annotated[
    Literal["packed", "single"] | None,
    typer.Option(help="Many records a call, or one. [default: packed]", rich_help_panel=_PROVIDER),
]
Rpm = Annotated[
    float | None, typer.Option(help="Requests a minute allowed.", rich_help_panel=_LIMITS)
]
Tpm = Annotated[
    float | None, typer.Option(help="Tokens a minute allowed.", rich_help_panel=_LIMITS)
]
Burst = Annotated[
    int | None,
    typer.Option(help="Requests that may go at once. [default: rpm]", rich_help_panel=_LIMITS),
]
MaxConcurrency = Annotated[
    int | None, typer.Option(help="Calls in flight. [default: 20]", rich_help_panel=_LIMITS)
]
Context = Annotated[
    int | None,
    typer.Option(help="Tokens the model takes. [default: 8192]", rich_help_panel=_LIMITS),
]
PackTokens = Annotated[
    int | None,
    typer.Option(help="Input tokens of a pack. [default: 5000]", rich_help_panel=_LIMITS),
]
Language = Annotated[
    Literal["auto", "zh", "en"] | None,
    typer.Option(
        help="Of the report. [default: auto, that of most records]", rich_help_panel=_OUTPUT
    ),
]
Since = Annotated[
    str | None,
    typer.Option(help="Only records from this time on (ISO, or HH:MM).", rich_help_panel=_INPUT),
]
Until = Annotated[
    str | None, typer.Option(help="Only records before this time.", rich_help_panel=_INPUT)
]
Date = Annotated[
    str | None,
    typer.Option(
        help="The day: YYYY-MM-DD, today, yesterday. Fills {date} in paths and times without one.",
        rich_help_panel=_INPUT,
    ),
]
Timezone = Annotated[
    str | None,
    typer.Option(
        help="Of times without one, and of the report. [default: this machine's]",
        rich_help_panel=_INPUT,
    ),
]
KindOf = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        help="GLOB=KIND: conversation, operation or feedback, where the shape misleads.",
        rich_help_panel=_INPUT,
    ),
]
Sample = Annotated[
    int | None,
    typer.Option(help="Only this many records, the same ones each time.", rich_help_panel=_INPUT),
]
MaxFailed = Annotated[
    float | None,
    typer.Option(
        help="Share of records that may fail before the exit code is 3. [default: 0]",
        rich_help_panel=_OUTPUT,
    ),
]
AnswersPath = Annotated[
    str | None,
    typer.Option("--answers", help="Store of paid answers.", rich_help_panel=_OUTPUT),
]
Fresh = Annotated[
    bool,
    typer.Option("--fresh", help="Ask anew instead of recalling.", rich_help_panel=_OUTPUT),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace another run in --out.", rich_help_panel=_OUTPUT)
]
NoMask = Annotated[
    bool,
    typer.Option("--no-mask", help="Send private values as they are.", rich_help_panel=_INPUT),
]
Config = Annotated[
    str | None, typer.Option(help="Configuration. [default: fupan.yaml if there is one]")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


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
def run(
    inputs: Inputs = None,
    out: Out = None,
    base_url: BaseUrl = None,
    model: Model = None,
    api_key_env: ApiKeyEnv = None,
    provider: ProviderName = None,
    mode: Mode = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    burst: Burst = None,
    max_concurrency: MaxConcurrency = None,
    context: Context = None,
    pack_tokens: PackTokens = None,
    language: Language = None,
    since: Since = None,
    until: Until = None,
    date: Date = None,
    timezone: Timezone = None,
    kind: KindOf = None,
    sample: Sample = None,
    max_failed: MaxFailed = None,
    answers: AnswersPath = None,
    fresh: Fresh = False,
    overwrite: Overwrite = False,
    no_mask: NoMask = False,
    config: Config = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write the retrospective of INPUTS to a folder.

    Without a provider the built-in analyst is used, which needs no key and no network:

    \b
        fupan run logs/ --out retro/

    With one (the key is read from the environment only):

    \b
        export LLM_API_KEY=...
        fupan run logs/ --out retro/ --base-url https://host/v1 --model NAME --rpm 60

    The same command again goes on where it was stopped and pays for nothing twice.
    """
    flags = _flags(locals())
    with _exit_codes(), _configured(flags) as settings:
        from job.run import run_job
        from job.show import closing_lines

        finished = run_job(settings, Console(stderr=True), quiet or json)
        if json:
            sys.stdout.write(orjson.dumps(finished.summary()).decode() + "\n")
        elif not quiet:
            for line in closing_lines(finished.report, finished.view, str(finished.page)):
                print(line)
        if finished.error is not None:
            raise finished.error


@app.command()
def plan(
    inputs: Inputs = None,
    base_url: BaseUrl = None,
    model: Model = None,
    api_key_env: ApiKeyEnv = None,
    provider: ProviderName = None,
    mode: Mode = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    burst: Burst = None,
    max_concurrency: MaxConcurrency = None,
    context: Context = None,
    pack_tokens: PackTokens = None,
    language: Language = None,
    since: Since = None,
    until: Until = None,
    date: Date = None,
    timezone: Timezone = None,
    kind: KindOf = None,
    sample: Sample = None,
    answers: AnswersPath = None,
    fresh: Fresh = False,
    no_mask: NoMask = False,
    config: Config = None,
    show_request: Annotated[
        bool, typer.Option("--show-request", help="Print the first request that would be sent.")
    ] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Show what `run` would do: files as understood, records, packs, tokens, minutes.

    Reads everything and calls nothing.
    """
    values = locals()
    flags = _flags(values)
    with _exit_codes(), _configured(flags) as settings:
        from job.preview import preview, preview_lines

        found = preview(settings, Console(stderr=True), quiet or json)
        if json:
            sys.stdout.write(orjson.dumps(found.as_json()).decode() + "\n")
        else:
            for line in preview_lines(found, show_request):
                print(line)


@app.command()
def report(
    folder: Annotated[str, typer.Argument(help="Folder of a run.", metavar="DIR")],
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Render the report of a run again from what is in its folder."""
    with _exit_codes():
        from job.lines import LineFinder
        from job.report import write_report

        root = Path(folder)
        if not (root / "run.json").exists():
            raise UsageError(f"{root} holds no finished run: it has no run.json")
        inputs = orjson.loads((root / "run.json").read_bytes())["inputs"]
        made = write_report(root, LineFinder(inputs))
        if json:
            sys.stdout.write(orjson.dumps(made).decode() + "\n")
        elif not quiet:
            print(root / "report.html")


@app.command(name="simulate", help=simulate.__doc__)
@functools.wraps(simulate)
def _simulate(**values: Any) -> None:
    with _exit_codes():
        simulate(**values)


def _flags(values: dict[str, Any]) -> Flags:
    """What the command line said, from a command's own parameters."""
    known = {name: values[name] for name in Flags.__dataclass_fields__ if name in values}
    known["inputs"] = tuple(values["inputs"] or ())
    known["kind"] = tuple(values["kind"] or ())
    return Flags(**known, mask=not values["no_mask"])


@contextmanager
def _configured(flags: Flags) -> Iterator[Settings]:
    yield resolve(flags)


@contextmanager
def _exit_codes() -> Iterator[None]:
    """Turn every error into a line on stderr and an exit code."""
    try:
        yield
    except JobError as error:
        print(f"fupan: {error}", file=sys.stderr)
        raise typer.Exit(error.exit_code) from error
    except KeyboardInterrupt as error:
        print("fupan: interrupted", file=sys.stderr)
        raise typer.Exit(4) from error
    except BrokenPipeError as error:
        raise typer.Exit(1) from error


def main() -> None:
    """The entry point of the command."""
    app()
