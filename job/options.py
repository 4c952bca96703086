"""The options of the commands, each with its help.

Invariant: an option says what the user said and nothing more; what it means, and whether it makes
sense, is decided in `config.py`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

_PROVIDER = "Provider"
_LIMITS = "Limits"
_INPUT = "Input"
_OUTPUT = "Output"

Inputs = Annotated[
    list[str] | None,
    typer.Argument(help="Files, folders, globs or s3:// URIs. Default: the inputs of fupan.yaml."),
]
Out = Annotated[
    str | None,
    typer.Option(
        help="Folder of the results, or a URI: s3://bucket/retro. [default: retro]",
        rich_help_panel=_OUTPUT,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="OpenAI-compatible API, such as https://host/v1.", rich_help_panel=_PROVIDER),
]
Model = Annotated[
    str | None,
    typer.Option(
        help="Model to ask; several, cheapest first and comma between, or auto (the tiers of "
        "fupan.yaml): each record goes to the cheapest that is up to it.",
        rich_help_panel=_PROVIDER,
    ),
]
Instructions = Annotated[
    str | None,
    typer.Option(
        help="File of your own instructions to the model: what counts as a problem, how grave.",
        metavar="FILE",
        rich_help_panel=_PROVIDER,
    ),
]
CompressInstructions = Annotated[
    bool,
    typer.Option(
        "--compress-instructions",
        help="Have the model shorten them once, if every rule survives a check.",
        rich_help_panel=_PROVIDER,
    ),
]
Canary = Annotated[
    float | None,
    typer.Option(
        help="First ask this percentage of records packed and one by one, and go on one by one "
        "if packing makes the answers worse.",
        metavar="PERCENT",
        rich_help_panel=_PROVIDER,
    ),
]
MaxSpend = Annotated[
    float | None,
    typer.Option(
        help="Spend at most this much on the run, in the currency of the prices; the rest stays "
        "unasked (exit 4).",
        metavar="AMOUNT",
        rich_help_panel=_LIMITS,
    ),
]
Deadline = Annotated[
    str | None,
    typer.Option(
        help="Have the report by this time of day; what matters least stays unasked (exit 4).",
        metavar="HH:MM",
        rich_help_panel=_LIMITS,
    ),
]
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
    float | None,
    typer.Option(
        help="Requests a minute allowed. [default: found by trying]", rich_help_panel=_LIMITS
    ),
]
Tpm = Annotated[
    float | None,
    typer.Option(
        help="Tokens a minute allowed. [default: found by trying]", rich_help_panel=_LIMITS
    ),
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
    typer.Option(
        help="Input tokens of a pack. [default: from 5000 on, found while asking]",
        rich_help_panel=_LIMITS,
    ),
]
Language = Annotated[
    Literal["auto", "zh", "en"] | None,
    typer.Option(
        help="Of the report. [default: auto, that of most records]", rich_help_panel=_OUTPUT
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        help="Only records from this time on: 2026-03-14T08:00, or 08:00 of --date.",
        rich_help_panel=_INPUT,
    ),
]
Until = Annotated[
    str | None,
    typer.Option(help="Only records before this time, said likewise.", rich_help_panel=_INPUT),
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
        help="Share of records (0.01: 1 %) that may fail before the exit code is 3. [default: 0]",
        rich_help_panel=_OUTPUT,
    ),
]
AnswersPath = Annotated[
    str | None,
    typer.Option(
        "--answers",
        help="File of paid answers, or redis://HOST:6379/0. "
        "[default: ~/.local/share/fupan/answers.db]",
        rich_help_panel=_OUTPUT,
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        help="Compare with an earlier run: its folder, or auto: the last seven beside this one.",
        metavar="DIR|auto",
        rich_help_panel=_OUTPUT,
    ),
]
KnownFile = Annotated[
    str | None,
    typer.Option(
        "--known",
        help="File of known problems. [default: known.yaml beside fupan.yaml, if there is one]",
        metavar="FILE",
        rich_help_panel=_OUTPUT,
    ),
]
Fresh = Annotated[
    bool,
    typer.Option(
        "--fresh", help="Ask anew instead of recalling paid answers.", rich_help_panel=_OUTPUT
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace another run in --out.", rich_help_panel=_OUTPUT)
]
NoMask = Annotated[
    bool,
    typer.Option("--no-mask", help="Send private values as they are.", rich_help_panel=_INPUT),
]
Config = Annotated[
    str | None, typer.Option(help="File of settings. [default: fupan.yaml if there is one]")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but errors and warnings.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
