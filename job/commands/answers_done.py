"""What `fupan answers` does with the store of answers: look, forget, hand out."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import orjson

from job.answers.beside import is_of
from job.answers.words import answers_error
from job.commands.answers_shown import contents_json, contents_lines, forgotten_line
from job.config import answers_at
from job.errors import UsageError
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


def look_after(
    action: str,
    path: str | None,
    older_than: float | None,
    model: str | None,
    dry_run: bool,
    out: str | None,
    json: bool,
    quiet: bool,
) -> None:
    """Do `action` (stats, prune, export) to the store at `path`, None for the user's own, and print
    what comes of it. The rest as the command has it. Raises UsageError, StoreError."""
    at = answers_at(path)
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
