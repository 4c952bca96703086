"""`fupan show`: a theme of a finished run in the terminal, with every record behind it.

Invariant: what is shown is what the run left, nothing is counted anew; records pass one by one,
however many there are; no text of a log is obeyed by the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from job.errors import UsageError
from job.printable import printable
from job.storage.place import Place
from job.storage.store import store_words
from job.write import read_tables

SHOWN_RECORDS = 20
"""Of a theme, where nobody says how many."""
SHOWN_CHARACTERS = 2000
"""Of one record."""
_COLUMNS = [
    *("id", "source", "position", "time", "kind", "lang", "user", "session", "service", "host"),
    *("level", "rating", "text", "via", "represented_by", "outcome", "issues"),
]


def read_report(folder: str) -> dict[str, Any]:
    """report.json of a run. Raises UsageError for a folder that holds none."""
    place = Place.of(folder) / "report.json"
    try:
        report = orjson.loads(place.read_bytes())
        themes = report["themes"]
    except FileNotFoundError as error:
        raise UsageError(f"{folder} holds no finished run: there is no report.json") from error
    except OSError as error:
        why = store_words(error) or error.strerror
        raise UsageError(f"cannot read {place}: {why}") from error
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise UsageError(f"{place} was not written by a run") from error
    if not isinstance(themes, list) or not all(isinstance(each, dict) for each in themes):
        raise UsageError(f"{place} was not written by a run")
    return dict(report)


def all_themes(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The themes of problems, then those of praise."""
    return [*report["themes"], *report.get("positive", {}).get("themes", ())]


def find_theme(report: Mapping[str, Any], wanted: str) -> dict[str, Any]:
    """The theme whose id is, or begins with, `wanted` (also without its `t-`). Raises UsageError
    where there is none, or more than one."""
    found = [
        theme
        for theme in all_themes(report)
        if wanted and (theme["id"].startswith(wanted) or theme["id"].startswith(f"t-{wanted}"))
    ]
    exact = [theme for theme in found if theme["id"] == wanted]
    if len(exact or found) == 1:
        return dict((exact or found)[0])
    if not found:
        raise UsageError(f"no theme {wanted!r}; `fupan show DIR` lists them")
    names = ", ".join(theme["id"] for theme in found[:5])
    raise UsageError(f"{wanted!r} is the beginning of {len(found)} themes: {names}")


def theme_records(folder: str, theme_id: str) -> Iterator[dict[str, Any]]:
    """Each record with an issue of the theme, as it stands in the results: its fields, and of its
    `issues` those of the theme. Raises UsageError for results that cannot be read."""
    for table in _tables(folder):
        lists = table["issues"].combine_chunks()
        themes = pc.struct_field(pc.list_flatten(lists), "theme")
        parents = pc.list_parent_indices(lists).filter(
            pc.fill_null(pc.equal(themes, theme_id), False)
        )
        for row in table.take(pc.unique(parents)).to_pylist():
            yield row | {"issues": [each for each in row["issues"] if each["theme"] == theme_id]}


def _tables(folder: str) -> Iterator[pa.Table]:
    files = (Place.of(folder) / "results").glob("*.parquet")
    if not files:
        raise UsageError(f"{folder} holds no results: there is no results/*.parquet in it")
    try:
        yield from read_tables(files, columns=_COLUMNS)
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"the results in {folder} cannot be read: {error}") from error


def list_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """The themes of a run, one a line, those that matter most first."""
    yield printable(str(report["headline"]))
    for theme in all_themes(report):
        yield printable(
            f"{theme['id']}  {theme['records']:>7,}  {theme.get('severity') or 'praise':<8}  "
            f"{theme.get('status') or '':<6}  {theme['title']}"
        )


def list_json(report: Mapping[str, Any]) -> Iterator[str]:
    """The same, each theme as one line of JSON."""
    for theme in all_themes(report):
        yield orjson.dumps(theme).decode()


def card_lines(theme: Mapping[str, Any]) -> Iterator[str]:
    """What the report says of a theme."""
    status = f", {theme['status']}" if theme.get("status") else ""
    severity = theme.get("severity") or "praise"
    yield printable(f"{theme['title']}  [{severity}{status}]  {theme['id']}")
    span = f"; {theme['first']} to {theme['last']}" if theme.get("first") else ""
    yield printable(f"{_count(theme['records'], 'record')}, {_count(theme['users'], 'user')}{span}")
    if theme.get("summary"):
        yield printable(f"what happened: {theme['summary']}")
    if theme.get("cause"):
        yield printable(f"cause ({theme['basis']}): {theme['cause']}")
    if theme.get("action"):
        yield printable(f"to do: {theme['action']}")


def record_lines(row: Mapping[str, Any]) -> Iterator[str]:
    """One record of a theme: where it stands, what it says, what was found in it."""
    names = ("service", "host", "user", "session", "level", "rating")
    fields = [f"{name}={row[name]}" for name in names if row[name] is not None]
    when = row["time"].isoformat() if isinstance(row["time"], datetime) else "no time"
    yield printable(f"-- {when}  {row['source']} at byte {row['position']:,}  {row['id']}")
    yield printable("   " + "  ".join([row["kind"], row["via"], *fields]))
    text = row["text"]
    for line in text[:SHOWN_CHARACTERS].split("\n"):
        yield printable(f"   | {line}")
    if len(text) > SHOWN_CHARACTERS:
        yield f"   | ... ({len(text):,} characters; --json has all of them)"
    for issue in row["issues"]:
        cause = f"; cause ({issue['basis']}): {issue['cause']}" if issue["cause"] else ""
        yield printable(f"   {issue['severity']}: {issue['event']}{cause}")
        if issue["quote"]:
            yield printable(f"   quote: {issue['quote']}")


def shown_lines(folder: str, theme: Mapping[str, Any], limit: int) -> Iterator[str]:
    """Card and records of a theme; at most `limit` records, 0 for all."""
    yield from card_lines(theme)
    for row in islice(theme_records(folder, theme["id"]), limit or None):
        yield ""
        yield from record_lines(row)
    if limit and theme["records"] > limit:
        yield ""
        yield f"and {_count(theme['records'] - limit, 'more record')} (--limit 0 shows all)"


def json_lines(folder: str, theme: Mapping[str, Any], limit: int) -> Iterator[str]:
    """Each record of a theme as one line of JSON; at most `limit`, 0 for all."""
    for row in islice(theme_records(folder, theme["id"]), limit or None):
        yield orjson.dumps(row).decode()


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
