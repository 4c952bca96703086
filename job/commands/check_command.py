"""The command `fupan check`: ask the provider whether a run can begin."""

from __future__ import annotations

import sys
from typing import Annotated

import orjson
import typer

from job.flags import Flags
from job.options import ApiKeyEnv, BaseUrl, Config, Context, Json, Model, ProviderName


def check(
    base_url: BaseUrl = None,
    model: Model = None,
    api_key_env: ApiKeyEnv = None,
    provider: ProviderName = None,
    context: Context = None,
    config: Config = None,
    together: Annotated[
        int,
        typer.Option(min=0, max=20, help="Also send so many tiny requests at once.", metavar="N"),
    ] = 0,
    json: Json = False,
) -> None:
    """Ask the provider a tiny question: does it answer?

    Says also what it takes (JSON modes, names of limits, temperature) and what it allows (rates,
    context, models). Sends one request to the model, and one more for each feature that is refused:
    at most 6; as many to each where several models share the records (--model SMALL,LARGE).

    Exit codes: 0 it answers, 2 URL, model or key are wrong, 1 it fails or is busy.
    """
    flags = Flags(
        base_url=base_url,
        model=model,
        api_key_env=api_key_env,
        provider=provider,
        context=context,
        config=config,
    )
    from job.commands.check import check as check_provider

    checked = check_provider(flags, together)
    if json:
        sys.stdout.write(orjson.dumps(checked.as_json()).decode() + "\n")
    else:
        for line in checked.lines():
            print(line)
    raise typer.Exit(checked.exit_code)
