"""The command `fupan known`: list and change what is in known.yaml."""

from __future__ import annotations

from datetime import date
from typing import Annotated

import typer

from job.config_file import load_config
from job.errors import UsageError
from job.history.known_file import Action, change_known, known_lines
from job.options import Config, KnownFile
from job.printable import printable
from job.storage.place import Place


def known(
    action: Annotated[
        Action, typer.Argument(help="list, add, mute, close, open or remove.")
    ] = "list",
    about: Annotated[
        list[str] | None, typer.Argument(help="Id of a theme, or words of it.", metavar="ID|WORDS")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="mute: the last day, YYYY-MM-DD.", metavar="DATE")
    ] = None,
    owner: Annotated[str | None, typer.Option(help="Who takes care of it.")] = None,
    note: Annotated[str | None, typer.Option(help="Anything worth remembering.")] = None,
    run: Annotated[
        str | None,
        typer.Option(help="Folder of a run from which to note the theme's title.", metavar="DIR"),
    ] = None,
    config: Config = None,
    file: KnownFile = None,
) -> None:
    """Keep the file of known problems.

    Muted problems are counted, but neither headlined nor listed as actions; a closed one that
    comes back is headlined as such. Words stand for every theme whose title, summary or cause
    holds them all.

    \b
        fupan known mute t-7d7d42ef38 --until 2026-04-01 --owner Li
        fupan known close lease renewal
    """
    from job.config import known_file

    path = known_file(file, load_config(config), config)
    name = " ".join(" ".join(about or ()).split())
    if action == "list":
        for line in known_lines(path):
            print(printable(line))
        return
    if not name:
        raise UsageError(f"fupan known {action}: name the id of a theme, or words of it")
    change_known(
        path, action, name, _day(until, action), owner, note, Place.of(run) if run else None
    )
    print(printable(f"{path}: {name} {_DONE[action]}"))


_DONE = {
    "add": "is known",
    "mute": "is muted",
    "close": "is closed",
    "open": "is open",
    "remove": "is removed",
}


def _day(text: str | None, action: Action) -> date | None:
    if (text is None) == (action == "mute"):
        raise UsageError("--until DATE says how long to mute, and belongs to mute alone")
    try:
        return date.fromisoformat(text) if text is not None else None
    except ValueError as error:
        raise UsageError(f"--until {text!r} is no date; use YYYY-MM-DD") from error
