"""The command `fupan compare`: does another way of asking give the same answers?"""

from __future__ import annotations

import sys
from typing import Annotated

import orjson
import typer
from rich.console import Console

from job.errors import UsageError
from job.flags import Flags
from job.options import (
    AnswersPath,
    ApiKeyEnv,
    BaseUrl,
    Burst,
    Config,
    Context,
    Date,
    Inputs,
    Instructions,
    Json,
    KindOf,
    Language,
    MaxConcurrency,
    MaxSpend,
    Mode,
    Model,
    NoMask,
    PackTokens,
    ProviderName,
    Quiet,
    Rpm,
    Sample,
    Since,
    Timezone,
    Tpm,
    Until,
)
from job.printable import printable

_COMPARED = "What is compared"


def compare(
    inputs: Inputs = None,
    with_model: Annotated[
        str | None,
        typer.Option(
            help="The model against this one, in the mode of --mode.",
            metavar="NAME",
            rich_help_panel=_COMPARED,
        ),
    ] = None,
    with_instructions: Annotated[
        str | None,
        typer.Option(
            help="The instructions as they are against those of this file.",
            metavar="FILE",
            rich_help_panel=_COMPARED,
        ),
    ] = None,
    share: Annotated[
        float,
        typer.Option(
            help="Percentage of the records; 50 at least, 2,000 at most.",
            metavar="PERCENT",
            rich_help_panel=_COMPARED,
        ),
    ] = 10.0,
    out: Annotated[
        str | None, typer.Option(help="Folder to write compare.json to, or a URI.", metavar="DIR")
    ] = None,
    base_url: BaseUrl = None,
    model: Model = None,
    api_key_env: ApiKeyEnv = None,
    provider: ProviderName = None,
    mode: Mode = None,
    instructions: Instructions = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    burst: Burst = None,
    max_concurrency: MaxConcurrency = None,
    context: Context = None,
    pack_tokens: PackTokens = None,
    max_spend: MaxSpend = None,
    language: Language = None,
    since: Since = None,
    until: Until = None,
    date: Date = None,
    timezone: Timezone = None,
    kind: KindOf = None,
    sample: Sample = None,
    answers: AnswersPath = None,
    no_mask: NoMask = False,
    config: Config = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Ask about the same records in two ways: do the answers agree?

    Packed calls against single ones, unless --with-model or --with-instructions name something
    else. A tenth of the records that differ is asked anew in both ways, and a fifth of that (60 to
    200 records) once more in the first, to see how far the model agrees with itself. Nothing is
    recalled and nothing is stored.

    \b
        fupan compare logs/ --base-url https://host/v1 --model NAME --rpm 60

    The verdict is bad where answers get worse towards the end of a pack (it says from which
    position on), where more records fail or are to review, or where the answers differ more than
    those of the model when it is asked twice.

    Exit codes: 0 good, or undecided (a warning says so), 3 bad, 4 stopped early, 2 wrong usage,
    configuration or key, 1 anything else.
    """
    if with_model is not None and with_instructions is not None:
        raise UsageError("--with-model and --with-instructions: one thing at a time")
    if mode is not None and with_model is None and with_instructions is None:
        raise UsageError("--mode: both modes are compared; it goes with --with-model and the like")
    # Written so that nan fails.
    if not 0 < share <= 100:
        raise UsageError("--share: a percentage of the records above 0, such as 10")
    from job.config import resolve

    settings = resolve(
        Flags(
            inputs=tuple(inputs or ()),
            out=out,
            base_url=base_url,
            model=model,
            api_key_env=api_key_env,
            provider=provider,
            mode=mode,
            instructions=instructions,
            rpm=rpm,
            tpm=tpm,
            burst=burst,
            max_concurrency=max_concurrency,
            context=context,
            pack_tokens=pack_tokens,
            max_spend=max_spend,
            language=language,
            since=since,
            until=until,
            date=date,
            timezone=timezone,
            kind=tuple(kind or ()),
            sample=sample,
            answers=answers,
            mask=not no_mask,
            config=config,
        )
    )
    from job.commands.compare import Asked, check_out, write_comparison
    from job.commands.compare import compare as compare_ways

    asked = Asked(with_model, with_instructions, share / 100)
    if out is not None:
        check_out(settings)
    compared = compare_ways(settings, asked, Console(stderr=True), quiet or json)
    if json:
        sys.stdout.write(orjson.dumps(compared.as_json()).decode() + "\n")
    elif not quiet:
        for line in compared.lines():
            print(line)
    warnings = list(compared.warnings)
    if compared.found.verdict.word == "undecided":
        warnings.append(f"undecided: {compared.sentence}")
    for warning in warnings:
        print(f"fupan: warning: {printable(warning)}", file=sys.stderr)
    if out is not None:
        write_comparison(compared, settings)
    if compared.exit_code:
        raise typer.Exit(compared.exit_code)
