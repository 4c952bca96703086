"""Earlier runs, found and read: one that is named, or the last ones beside this run's folder.

Invariant: what a run was compared with is kept in its folder (`baseline.json`), so that its report
can be rendered again when the earlier runs are gone. A folder that holds no finished run is an
error where it was named, and passed over where it was only found.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import orjson
from pyarrow import fs

from job.errors import UsageError
from job.history.changes import (
    Baseline,
    Mode,
    PastRun,
    PastTheme,
    day_of,
    under_one_id,
    why_not_comparable,
)
from job.run_folder import IDENTITY
from job.storage.place import Place
from job.themes.table import EarlierTheme, read_themes
from job.write import write_json

AUTO = "auto"
KEPT = "baseline.json"
RUNS = 7
"""Runs of which `auto` takes the median: a week of days."""
_LOOKED_AT = 30
"""Folders whose report `auto` reads at most, those of the latest runs."""
_FACTS = ("stopped", "language", "model", "instructions", "version", "settings", "finished")
"""Of run.json: what a comparison needs."""


@dataclass(frozen=True, slots=True)
class _Finished:
    """A finished run as found: run.json, what the comparison needs of its report, its themes."""

    facts: dict[str, Any]
    run: PastRun
    table: Place


class EarlierRuns:
    """The runs that the one in `root` is compared with; of each the report is read once, of "auto"
    when it is first asked for."""

    def __init__(self, asked: str, root: Place) -> None:
        """`asked`: the folder of a run, or "auto". Raises UsageError where it is no folder of a
        finished run other than `root`."""
        self._root = root
        self._mode: Mode = "auto" if asked == AUTO else "run"
        self._named = None if asked == AUTO else _named(asked, root)

    @cached_property
    def _found(self) -> list[_Finished]:
        """The latest first."""
        return _beside(self._root) if self._named is None else [self._named]

    def themes(self) -> list[EarlierTheme]:
        """The themes whose ids the run goes on with, each as the latest run has it: those of the
        run it is compared with, of "auto" those of the last runs beside it, of whatever day."""
        themes: dict[str, EarlierTheme] = {}
        for found in self._found[:RUNS]:
            for theme in read_themes(found.table):
                themes.setdefault(theme.id, theme)
        return list(themes.values())

    def baseline(self, facts: Mapping[str, Any], day: str | None) -> Baseline:
        """What the run is compared with when it is finished (`facts`: its run.json). Of "auto", the
        runs beside it of no later day, back to the first with another model or other instructions.
        """
        mode = self._mode
        if facts["stopped"]:
            return Baseline(mode, (), "partial_now")
        used: list[_Finished] = []
        for found in self._found:
            if mode == "auto" and _later(found.run.day, day):
                continue
            reason = why_not_comparable(facts, found.facts)
            if reason == "partial" and mode == "auto":
                continue
            if reason is not None:
                if not used:
                    return Baseline(mode, (replace(found.run, themes=()),), reason)
                break
            used.append(found)
            if len(used) == RUNS:
                break
        if not used:
            return Baseline(mode, (), "none_found")
        return _compared(mode, self._root, used)


def earlier_runs(asked: str | None, root: Place) -> EarlierRuns | None:
    """What `--baseline` asks for; None: nothing. Raises UsageError, see `EarlierRuns`."""
    return None if asked is None else EarlierRuns(asked, root)


def _compared(mode: Mode, root: Place, used: Sequence[_Finished]) -> Baseline:
    ours = read_themes(root / "themes.parquet")
    tables = [read_themes(found.table) for found in used]
    runs = tuple(found.run for found in used)
    spaces = {theme.space for theme in ours}
    theirs = {theme.space for theme in tables[0]}
    if spaces and theirs and spaces != theirs:
        return Baseline(mode, tuple(replace(run, themes=()) for run in runs[:1]), "vectors")
    return Baseline(mode, under_one_id(ours, list(zip(runs, tables, strict=True))))


def keep_baseline(root: Place, baseline: Baseline | None) -> None:
    """Write `baseline.json`, or remove it where nothing was compared."""
    if baseline is None:
        (root / KEPT).unlink()
    else:
        write_json(root / KEPT, baseline)


def kept_baseline(root: Place) -> Baseline | None:
    """What the run in `root` was compared with; None if with nothing."""
    try:
        kept = orjson.loads((root / KEPT).read_bytes())
        runs = tuple(
            PastRun(**{**run, "themes": tuple(PastTheme(**theme) for theme in run["themes"])})
            for run in kept["runs"]
        )
        return Baseline(kept["mode"], runs, kept["reason"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{root / KEPT} was not written by a run: name the earlier run with --baseline"
        ) from error


def _named(asked: str, root: Place) -> _Finished:
    folder = Place.of(asked)
    if folder.real() == root.real():
        raise UsageError(f"--baseline {asked} is the run's own folder: name an earlier run's")
    found = _read(folder, root)
    if found is None:
        raise UsageError(
            f"--baseline {asked} is not the folder of a finished run: it needs run.json, "
            "report.json and themes.parquet"
        )
    return found


def _beside(root: Place) -> list[_Finished]:
    """The finished runs in the folder that holds `root`, the latest first."""
    found = (_read(folder, root) for folder in _folders(root))
    runs = [run for run in found if run is not None]
    return sorted(runs, key=_order, reverse=True)


def _order(found: _Finished) -> tuple[str, str]:
    return found.run.day or "", found.facts["finished"]


def _folders(root: Place) -> Iterator[Place]:
    """Folders beside `root` in which a run may have finished, those that were written last."""
    own = root.real()
    try:
        beside = [place for place in own.parent.iterdir() if place.real() != own]
    except OSError:
        return
    looks = zip(beside, Place.look_at([place / "run.json" for place in beside]), strict=True)
    held = [(look.mtime, place) for place, look in looks if look.type == fs.FileType.File]
    held = [(written, place) for written, place in held if not (place / IDENTITY).exists()]
    yield from (place for _, place in sorted(held, reverse=True)[:_LOOKED_AT])


def _read(folder: Place, root: Place) -> _Finished | None:
    """The finished run in `folder`; None if there is none."""
    table = folder / "themes.parquet"
    try:
        facts = orjson.loads((folder / "run.json").read_bytes())
        report = orjson.loads((folder / "report.json").read_bytes())
        if not table.is_file():
            return None
        for name in _FACTS:
            facts[name]
        day = report_day(report)
        return _Finished(
            facts,
            PastRun(
                path=_path_from(folder.real(), root.real()),
                day=day,
                records=report["ledger"]["records"],
                problems=report["problems"]["records"],
                model=facts["model"],
                themes=tuple(_theme(theme, day) for theme in report["themes"]),
            ),
            table,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _path_from(folder: Place, root: Place) -> str:
    """How `folder` is named in the report of the run in `root`, which may be moved with it."""
    same = folder.store == root.store
    return posixpath.relpath(folder.path, root.path) if same else str(folder)


def report_day(report: Mapping[str, Any]) -> str | None:
    """The day that a report is of (see `changes.day_of`)."""
    days: Counter[str] = Counter()
    for hour in report["period"]["by_hour"]:
        days[hour["hour"][:10]] += hour["records"]
    identity = report["run"].get("identity") or {}
    return day_of(identity.get("date"), days, report["period"]["last"])


def _theme(theme: Mapping[str, Any], day: str | None) -> PastTheme:
    seen = theme.get("days_seen") or {"days": 1, "since": day}
    return PastTheme(
        id=theme["id"],
        title=theme["title"],
        severity=theme["severity"],
        kind=max(theme["by_kind"], key=lambda kind: theme["by_kind"][kind]),
        records=theme["records"],
        days=seen["days"],
        since=seen["since"],
    )


def _later(then: str | None, day: str | None) -> bool:
    return then is not None and day is not None and then > day
