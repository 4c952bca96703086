"""The command `fupan show`: the themes of a finished run, and the records behind one."""

from __future__ import annotations

from typing import Annotated

import typer

from job.options import Json


def show(
    folder: Annotated[str, typer.Argument(help="Folder of a run, or its URI.", metavar="DIR")],
    theme: Annotated[
        str | None, typer.Option(help="Id of a theme, or enough of its beginning.", metavar="ID")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=0, help="Records shown, 0: all. [default: 20; with --json all]"),
    ] = None,
    json: Json = False,
) -> None:
    """List the themes of a run, or show one with its records.

    With --json, one line of JSON per record (or per theme).
    """
    from job.commands import inspect_theme

    found = inspect_theme.read_report(folder)
    if theme is None:
        lines = inspect_theme.list_json(found) if json else inspect_theme.list_lines(found)
    else:
        chosen = inspect_theme.find_theme(found, theme)
        if json:
            lines = inspect_theme.json_lines(folder, chosen, limit or 0)
        else:
            most = inspect_theme.SHOWN_RECORDS if limit is None else limit
            lines = inspect_theme.shown_lines(folder, chosen, most)
    for line in lines:
        print(line)
