"""The command `fupan answers`: what the store of answers holds, to forget some, to hand all out."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Literal

import orjson
import typer

from job.answers.beside import is_of
from job.answers.words import answers_error
from job.commands.answers_shown import contents_json, contents_lines, forgotten_line
from job.config import answers_at
from job.config_file import load_config
from job.errors import UsageError
from job.options import AnswersPath, Config, Json, Quiet
from job.planning import open_redis
from job.printable import printable
from job.spend.spending import forget_spend
from job.storage.place import Place
from job.write import appearing
from serve.ask import answers_redis_upkeep
from serve.ask.answers import Answers, default_path
from serve.ask.answers_at import AnswersAt
from serve.ask.answers_file import StoreError
from serve.ask.answers_redis import AnswersInRedis, RedisAnswers
from serve.ask.answers_upkeep import Contents, Forgotten, contents, export, forget

_DAY = 86_400


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
    at = answers_at(answers or load_config(config).run.answers)
    with closing(_open(at)) as store:
        if action == "export":
            _export(store, out, json, quiet)
            return
        if action == "prune":
            before = None if older_than is None else time.time() - older_than * _DAY
            known = _contents(store).models if model is not None else {}
            forgotten = _forget(store, before, model, dry_run)
            shown, lines = forgotten_line(forgotten, dry_run)
            if model is not None and model not in known:
                names = ", ".join(sorted(name for name in known if name)) or "no model"
                lines.append(f"no answer says it is of {model}; held are those of {names}")
            if before is not None and model is None:
                spent = forget_spend(_file_of(at), before, dry_run)
                shown["attempts"] = spent
                be = "would be" if dry_run else "were"
                lines.append(f"attempts that {be} forgotten of what old runs spent: {spent:,}")
        else:
            held = _contents(store)
            shown, lines = contents_json(held, store), contents_lines(held, store)
    if json:
        print(orjson.dumps(shown).decode())
    elif not quiet:
        for line in lines:
            print(printable(line))


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


def _contents(store: Answers | RedisAnswers) -> Contents:
    if isinstance(store, RedisAnswers):
        return answers_redis_upkeep.contents(store)
    return contents(store)


def _forget(
    store: Answers | RedisAnswers, before: float | None, model: str | None, dry_run: bool
) -> Forgotten:
    if isinstance(store, RedisAnswers):
        return answers_redis_upkeep.forget(store, before, model, dry_run)
    return forget(store, before, model, dry_run)


def _file_of(at: AnswersAt) -> Path:
    """The file beside which the account of spend and the key of the aliases lie."""
    return at if isinstance(at, Path) else default_path()


def _open(path: AnswersAt) -> Answers | RedisAnswers:
    if isinstance(path, AnswersInRedis):
        store = open_redis(path)
        if not store.check():
            raise UsageError(
                f"no answers in {path}; a run with a model keeps them there, --answers names "
                "another store"
            )
        return store
    if not path.is_file():
        raise UsageError(
            f"no store of answers at {path}; a run with a model makes one, --answers names another"
        )
    try:
        return Answers(path)
    except StoreError as error:
        raise answers_error(path, error) from error


def _export(store: Answers | RedisAnswers, out: str | None, json: bool, quiet: bool) -> None:
    if isinstance(store, RedisAnswers):
        lines, beside = answers_redis_upkeep.export(store), default_path()
    else:
        lines, beside = export(store), store.path
    if out is None:
        _to_stdout(lines)
        return
    place = Place.of(out)
    if place.is_local and is_of(beside, place.path):
        raise UsageError(f"--out {out} is the store, or a file that belongs to it; name another")
    count = 0
    # What the answers quote of the records is the owner's alone, as in the store.
    with appearing(place, mode=0o600) as file:
        for line in lines:
            file.write(line)
            count += 1
    if json:
        print(orjson.dumps({"answers": count, "out": str(place)}).decode())
    elif not quiet:
        print(printable(f"{place}: {count:,} answers"))


def _to_stdout(lines: Iterable[bytes]) -> None:
    try:
        for line in lines:
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The reader has enough. What Python would still flush at its end must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
