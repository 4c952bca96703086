"""The command `fupan answers`: what the store of answers holds, to forget some, to hand all out."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import typer

from job.config_file import load_config
from job.errors import UsageError
from job.options import AnswersPath, Config, Json, Quiet


def answers(
    action: Annotated[
        Literal["stats", "prune", "export"], typer.Argument(help="stats, prune or export.")
    ] = "stats",
    older_than: Annotated[
        float | None,
        typer.Option(
            help="prune: forget what was stored more than so many days ago.", metavar="DAYS"
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="prune: forget answers of this model, as `stats` names it.", metavar="NAME"
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="prune: only say what would be forgotten.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(help="export: write to this file, or URI. [default: stdout]", metavar="FILE"),
    ] = None,
    answers: AnswersPath = None,
    config: Config = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Look after the store of paid answers.

    stats says what it holds and what recalling has saved; prune forgets and gives the room back to
    the disk; export writes every answer as a line of JSON (key, stored_at, model, answer).

    \b
        fupan answers stats
        fupan answers prune --older-than 90 --dry-run
        fupan answers export --out answers.jsonl
    """
    _check(action, older_than, model, dry_run, out, json)
    from job.commands.answers_done import look_after

    look_after(
        action,
        answers or load_config(config).run.answers,
        older_than,
        model,
        dry_run,
        out,
        json,
        quiet,
    )


def _check(
    action: str,
    older_than: float | None,
    model: str | None,
    dry_run: bool,
    out: str | None,
    json: bool,
) -> None:
    """Raise UsageError where an option belongs to another action or makes no sense."""
    chosen = older_than is not None or model is not None
    if action != "prune" and (chosen or dry_run):
        raise UsageError("--older-than, --model and --dry-run belong to `fupan answers prune`")
    if action != "export" and out is not None:
        raise UsageError("--out belongs to `fupan answers export`")
    if action == "export" and out is None and json:
        raise UsageError(
            "fupan answers export: --json says what went to --out FILE; without it every answer "
            "goes to stdout, as JSON anyway"
        )
    if action == "prune" and not chosen:
        raise UsageError(
            "fupan answers prune: say what, by --older-than DAYS, --model NAME or both"
        )
    if older_than is not None and not 0 <= older_than < math.inf:
        raise UsageError(f"--older-than {older_than:g}: a number of days, 0 or more")
