"""A record inside the message of another: JSON or logfmt as a string, as container logs hold it.

Invariant: nothing is lost by opening a string: its fields are in the record under the name of the
field it stood in, and what is no record stays the text it is.
"""

from __future__ import annotations

from typing import Any

from job.clean.shape import Path, Shape, shape_of
from job.read.encoding import UTF8
from job.read.json_value import parse_line
from job.read.logfmt import parse_logfmt

_BEFORE = 200
"""Characters of a line before its JSON record: host, service, thread, logger."""


def opened(data: dict[str, Any], shape: Shape) -> tuple[dict[str, Any], list[Path]]:
    """The data with the record in its message as an object, and the paths to the objects opened
    so, from the outside in; the data as it is and no path where there is none."""
    for name in shape.of("message"):
        inner = _record_in(data[name])
        if inner is not None:
            break
    else:
        return data, []
    inner, deeper = opened(inner, shape_of(tuple(inner)))
    return {**data, name: inner}, [(name,), *((name, *path) for path in deeper)]


def json_in(value: Any) -> Any:
    """The list or object that a string spells as JSON; else the value as it is."""
    if isinstance(value, str):
        text = value.strip()
        if text[:1] + text[-1:] in ("{}", "[]"):
            try:
                return parse_line(text, UTF8)[0]
            except ValueError:
                return value
    return value


def record_behind(text: str) -> tuple[str, dict[str, Any]] | None:
    """What stands before a JSON record that ends a log line, and the record."""
    start = text.find("{", 0, _BEFORE)
    if start < 0 or "\n" in text[:start]:
        return None
    found = json_in(text[start:])
    return (text[:start].rstrip(), found) if isinstance(found, dict) and _says(found) else None


def _says(data: dict[str, Any]) -> bool:
    """Whether an object is a record: it has a level or a message. Pairs alone are a way to write
    a message."""
    shape = shape_of(tuple(data))
    return bool(shape.of("level") or shape.of("message"))


def _record_in(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, str):
        return None
    if value.endswith(("}", "}\n")) and isinstance(found := json_in(value), dict):
        return found or None
    if "=" not in value:
        return None
    pairs = parse_logfmt(value.strip())
    return dict(pairs[0]) if pairs and _says(dict(pairs[0])) else None
