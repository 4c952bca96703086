"""The options that every command about a run takes, said once.

Invariant: `run`, `plan` and their like take the same options, so that one word changes one command
into the other.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from job.flags import Flags
from job.options import (
    AnswersPath,
    ApiKeyEnv,
    Baseline,
    BaseUrl,
    Burst,
    Canary,
    CompressInstructions,
    Config,
    Context,
    Date,
    Deadline,
    Fresh,
    Inputs,
    Instructions,
    Json,
    KindOf,
    KnownFile,
    Language,
    MaxConcurrency,
    MaxFailed,
    MaxSpend,
    Mode,
    Model,
    NoMask,
    Out,
    Overwrite,
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

Command = Callable[..., None]


def job_options(
    inputs: Inputs = None,
    out: Out = None,
    base_url: BaseUrl = None,
    model: Model = None,
    api_key_env: ApiKeyEnv = None,
    provider: ProviderName = None,
    mode: Mode = None,
    instructions: Instructions = None,
    compress_instructions: CompressInstructions = False,
    canary: Canary = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    burst: Burst = None,
    max_concurrency: MaxConcurrency = None,
    context: Context = None,
    pack_tokens: PackTokens = None,
    max_spend: MaxSpend = None,
    deadline: Deadline = None,
    language: Language = None,
    since: Since = None,
    until: Until = None,
    date: Date = None,
    timezone: Timezone = None,
    kind: KindOf = None,
    sample: Sample = None,
    max_failed: MaxFailed = None,
    answers: AnswersPath = None,
    baseline: Baseline = None,
    known: KnownFile = None,
    fresh: Fresh = False,
    overwrite: Overwrite = False,
    no_mask: NoMask = False,
    config: Config = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Only its signature is used: the options of `run` and `plan`."""


def takes_job_options(command: Command) -> Command:
    """`command(flags, quiet, json, **more)` as a function with the options of a run: those of
    `job_options`, then those that the command has beside."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[3:]
    shared = inspect.signature(job_options, eval_str=True)

    @functools.wraps(command)
    def with_options(**values: Any) -> None:
        more = {parameter.name: values[parameter.name] for parameter in own}
        command(Flags.from_command(values), values["quiet"], values["json"], **more)

    parameters = [*shared.parameters.values(), *own]
    with_options.__annotations__ = {each.name: each.annotation for each in parameters}
    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    del with_options.__wrapped__
    return with_options
