"""Changes to known.yaml, as `fupan known` makes them.

Invariant: comments and order of what is already in the file stay as they are; the file is written
whole or not at all, and only if what would be in it can be read again.
"""

from __future__ import annotations

import io
from collections.abc import Callable, MutableMapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal

import orjson
from ruamel.yaml import YAML

from job.errors import UsageError
from job.history.known import Entry, is_theme_id, load_known, parse_known
from job.storage.place import Place
from job.write import write_atomic

Action = Literal["list", "add", "mute", "close", "open", "remove"]
Changes = MutableMapping[str, Any]


def change_known(
    path: Path,
    action: Action,
    about: str,
    until: date | None = None,
    owner: str | None = None,
    note: str | None = None,
    run: Place | None = None,
) -> None:
    """Carry out `action` on the entry for `about`, the id of a theme or words.

    add: make the entry, or set its owner and note; mute: until `until`; close: from now on its
    return is news; open: neither muted nor closed; remove: forget it. `run`: the folder of a run
    from which the theme's title is noted. Raises UsageError where that makes no sense.
    """
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    known = [entry.about for entry in parse_known(text, path)]
    if action in ("open", "remove") and about not in known:
        raise UsageError(
            f"{path} has no entry {about!r}; it has "
            + (", ".join(map(repr, known[:10])) or "none at all")
        )
    title = _title(run, about) if run else None

    def change(entries: Changes) -> None:
        if action == "remove":
            del entries[_key(entries, about)]
            return
        key = _key(entries, about) if about in known else about
        entry = entries.get(key)
        if entry is None:
            entry = entries[key] = {}
        given: dict[str, str | date | None] = {"title": title, "owner": owner, "note": note}
        if action == "mute":
            given["muted_until"] = until
        if action in ("close", "open"):
            entry.pop("muted_until", None)
            entry.pop("closed", None)
        if action == "close":
            given["closed"] = datetime.now(UTC).astimezone().isoformat(timespec="seconds")
        entry.update({name: value for name, value in given.items() if value is not None})

    changed = _edited(text, change)
    parse_known(changed, path)
    write_atomic(Place.of(path), changed)


def known_lines(path: Path) -> list[str]:
    """The entries in words, a line each."""
    return [_line(entry) for entry in load_known(path)] or [f"{path}: no known problems"]


def _line(entry: Entry) -> str:
    known = entry.known
    parts = [entry.about]
    parts += [known.title] if known.title else []
    parts += [f"owner {known.owner}"] if known.owner else []
    parts += [f"muted until {known.muted_until}"] if known.muted_until else []
    parts += [f"closed {known.closed}"] if known.closed else []
    parts += [known.note] if known.note else []
    return "  ·  ".join(parts)


def _key(entries: Changes, about: str) -> str:
    """The entry's key as the file spells it."""
    return next(key for key in entries if " ".join(str(key).split()) == about)


def _edited(text: str, change: Callable[[Changes], None]) -> str:
    """`text`, a YAML mapping or nothing but comments, with `change` made."""
    editor = YAML()
    editor.preserve_quotes = True
    editor.width = 4_096
    entries = editor.load(text)
    before = ""
    if entries is None:
        # The library forgets comments that belong to nothing.
        before, entries = text.rstrip("\n") + "\n" if text.strip() else "", {}
    change(entries)
    out = io.StringIO()
    if entries:
        editor.dump(entries, out)
    return before + out.getvalue()


def _title(run: Place, about: str) -> str | None:
    """The title of the theme `about` in the report of `run`; None for words."""
    if not is_theme_id(about):
        return None
    try:
        themes = orjson.loads((run / "report.json").read_bytes())["themes"]
        return next(str(theme["title"]) for theme in themes if theme["id"] == about)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{run} is not the folder of a finished run") from error
    except StopIteration as error:
        raise UsageError(f"{run} has no theme {about}") from error
