"""known.yaml: problems that the team knows of, who owns them, until when they are muted, and which
are closed.

    t-7d7d42ef38:            # the id of a theme
      owner: Li
      muted_until: 2026-04-01
    lease renewal:           # or words
      closed: 2026-03-14

Invariant: an entry is about the theme whose id it is, or about every theme whose words hold all of
the entry's. Reading never changes the file (`known_file.py` does).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from job.config_file import validation_text
from job.errors import UsageError
from serve.ask.once_yaml import load_yaml

KNOWN_FILE = "known.yaml"
_ID = re.compile(r"t-[0-9a-f]{10}")


def is_theme_id(about: str) -> bool:
    """Whether `about` has the form of a theme's id (`themes.ids.theme_id`)."""
    return _ID.fullmatch(about) is not None


def _moment(value: object) -> object:
    """A quoted date is a date too."""
    if isinstance(value, str):
        return datetime.fromisoformat(value) if len(value) > 10 else date.fromisoformat(value)
    return value


class Known(BaseModel):
    """What is known of a problem. It is muted to the end of `muted_until`. `closed`: a day, of
    which it may still be, a moment, or that it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str | None = None
    owner: str | None = None
    muted_until: date | None = None
    closed: Annotated[bool | datetime | date | None, BeforeValidator(_moment)] = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry; `about` is the id of a theme, or words."""

    about: str
    known: Known

    def matches(self, theme: Mapping[str, Any]) -> bool:
        """Whether `theme` (id, title, summary, cause) is meant."""
        if is_theme_id(self.about):
            return bool(theme["id"] == self.about)
        said = " ".join(str(theme[name] or "") for name in ("title", "summary", "cause"))
        return all(word in said.casefold() for word in self.about.casefold().split())


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of a theme on the day of a run. `returned`: it was closed and is back, which
    ends its being muted."""

    owner: str | None = None
    muted_until: date | None = None
    returned: bool = False


def load_known(path: Path) -> list[Entry]:
    """The entries of `path`; none where there is no such file.

    Raises UsageError naming file, entry and what is wrong with it.
    """
    try:
        return parse_known(path.read_text(encoding="utf-8"), path)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: save it as UTF-8") from error


def parse_known(text: str, path: Path) -> list[Entry]:
    """The entries that `text`, the content of `path`, holds."""
    try:
        rows = load_yaml(text)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{path} is not valid YAML{line}: {error.problem}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not valid YAML") from error
    except ValueError as error:
        # A date of YAML's own that does not exist.
        raise UsageError(f"{path}: {error}") from error
    if rows is None:
        return []
    if not isinstance(rows, dict):
        raise UsageError(f"{path}: entries such as `lease renewal: {{owner: Li}}`")
    entries = []
    for about, row in rows.items():
        if not isinstance(about, str) or not about.strip():
            raise UsageError(f"{path}: {about!r} is neither the id of a theme nor words")
        try:
            entries.append(Entry(" ".join(about.split()), Known.model_validate(row or {})))
        except ValidationError as error:
            raise UsageError(f"{path}, {about}: {validation_text(error, Known)}") from error
    return entries


def judge(
    entries: Sequence[Entry],
    theme: Mapping[str, Any],
    run: Mapping[str, Any],
) -> Verdict:
    """What `entries` say of `theme` (id, title, summary, cause; last: the time of its last record
    or None) in `run` (day; started; zone)."""
    own = [entry for entry in entries if entry.matches(theme)]
    returned = any(_came_back(entry.known, theme["last"], run) for entry in own)
    until = max((e.known.muted_until for e in own if e.known.muted_until), default=None)
    muted = until is not None and date.fromisoformat(run["day"]) <= until and not returned
    return Verdict(
        owner=next((e.known.owner for e in own if e.known.owner), None),
        muted_until=until if muted else None,
        returned=returned,
    )


def _came_back(known: Known, last: datetime | None, run: Mapping[str, Any]) -> bool:
    """Whether a closed problem occurred after it was closed; where its records have no times,
    whether the run began after that."""
    closed = known.closed
    if closed is None or isinstance(closed, bool):
        return bool(closed)
    if not isinstance(closed, datetime):
        day = last.astimezone(run["zone"]).date() if last else date.fromisoformat(run["day"])
        return day > closed
    closed = closed if closed.tzinfo else closed.replace(tzinfo=run["zone"])
    occurred: datetime = last or run["started"]
    return occurred > closed
