"""The command `fupan report`: the report of a finished run, made again from its folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer

from job.errors import UsageError
from job.options import Baseline, Json, KnownFile, Quiet
from job.printable import printable
from job.storage.place import Place
from job.storage.store import store_words


def report(
    folder: Annotated[str, typer.Argument(help="Folder of a run, or its URI.", metavar="DIR")],
    baseline: Baseline = None,
    known: KnownFile = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Render the report of a run again from what is in its folder.

    Asks and counts nothing anew. Without --baseline it is compared with what it was compared with
    before, without --known its problems are known from the same file as before.

    \b
        fupan report retro/2026-03-14 --baseline retro/2026-03-13
    """
    from job.history.baseline import earlier_runs
    from job.lines import LineFinder
    from job.report import write_report
    from job.storage.hold import hold

    root = Place.of(folder)
    try:
        if not (root / "run.json").exists():
            raise UsageError(f"{root} holds no finished run: it has no run.json")
        inputs = orjson.loads((root / "run.json").read_bytes())["inputs"]
    except OSError as error:
        raise UsageError(f"cannot read {root}: {store_words(error) or error}") from error
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise UsageError(f"{root / 'run.json'} was not written by a run") from error
    earlier = earlier_runs(baseline, root)
    if known is not None and not Path(known).is_file():
        raise UsageError(f"--known {known}: no such file")
    with hold(root):
        made = write_report(root, LineFinder(inputs), earlier, Path(known) if known else None)
    if json:
        sys.stdout.write(orjson.dumps(made).decode() + "\n")
    elif not quiet:
        print(printable(str(root / "report.html")))
