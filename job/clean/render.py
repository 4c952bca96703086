"""An object of any depth as one line of `name=value`, for reading.

Invariant: every scalar that is not empty is in it once, in the order of the data, uncut.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

Hide = Callable[[str, str], str]
"""Given a field's name and its text: the text, or the alias of a credential."""


def scalar(value: Any) -> str:
    """A scalar as text; "" where it says nothing (null, blanks)."""
    if isinstance(value, str):
        return value.strip()
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def leaves(value: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Path and text of every scalar that is not empty; a list of scalars counts as one.

    Walks with a stack of its own: hostile data is nested deeper than a program can recurse.
    """
    if isinstance(value, dict):
        # Most records are flat.
        for name, inner in value.items():
            if isinstance(inner, Mapping | list | tuple):
                yield from _leaves((str(name),), inner)
            elif text := scalar(inner):
                yield (str(name),), text
    else:
        yield from _leaves((), value)


def _leaves(above: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    stack: list[tuple[tuple[str, ...], Any]] = [(above, value)]
    while stack:
        path, here = stack.pop()
        if isinstance(here, Mapping):
            stack += [((*path, str(name)), inner) for name, inner in reversed(list(here.items()))]
        elif isinstance(here, list | tuple):
            if any(isinstance(inner, Mapping | list | tuple) for inner in here):
                inners = list(enumerate(here))
                stack += [((*path, str(number)), inner) for number, inner in reversed(inners)]
            elif text := ", ".join(filter(None, map(scalar, here))):
                yield path, text
        elif text := scalar(here):
            yield path, text


def key_values(value: Any, hide: Hide, without: Collection[tuple[str, ...]] = ()) -> str:
    """`value` as `a.b=1 c=x`, without the fields at the paths in `without`."""
    parts = []
    left_out = set(without)
    lengths = {len(path) for path in left_out}
    before: tuple[str, ...] = ()
    for path, text in leaves(value):
        if path in left_out or (
            len(path) > 1 and any(path[:length] in left_out for length in lengths)
        ):
            continue
        if len(path) == 1 and not path[0].isdigit():
            (name,) = path
        else:
            name = next((part for part in reversed(path) if not part.isdigit()), "")
        if name in _VALUES:
            name = _called(value, path) or name
        parts.append(f"{_joined(path, before)}={hide(name, text)}" if path else text)
        before = path
    return " ".join(parts)


def _joined(path: tuple[str, ...], before: tuple[str, ...]) -> str:
    """The names of a path. Of long ones those that the path before it has too are not said again:
    with each of many values they would fill the memory."""
    if len(path) == 1 or sum(map(len, path)) <= _LONG_NAMES:
        return ".".join(path)
    new = 0
    for name, other in zip(path[:-1], before, strict=False):
        if name != other:
            break
        new += 1
    return ".".join((path[0][:_SHOWN_NAME] + "…", *path[new:]) if new else path)


_LONG_NAMES = 200
"""Characters of all names of a path."""
_SHOWN_NAME = 40
_VALUES = ("value", "Value", "val")
_NAMES = ("name", "Name", "key", "Key", "header", "field")


def _called(value: Any, path: tuple[str, ...]) -> str | None:
    """What the field at `path` is called by its neighbour: `{"name": "Cookie", "value": ...}`."""
    for part in path[:-1]:
        value = value[part] if isinstance(value, Mapping) else value[int(part)]
    if not isinstance(value, Mapping):
        return None
    return next((value[name] for name in _NAMES if isinstance(value.get(name), str)), None)
