"""The fields of one object by what they are: its own, those mapped, and those inside its message.

Invariant: a field is looked for by its mapped name, then by the usual ones, then in the records
inside; what is taken for a field of the record is noted, so that it need not be in the text too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from job.clean.nested import json_in, opened
from job.clean.render import Hide, key_values, scalar
from job.clean.shape import Path, Shape, at_path, named, plain, shape_of
from job.clean.turns import are_turns, find_turns, is_transcript

_NAMES = ("user", "session", "service", "host")
_STAYS_IN_TEXT = ("service",)
"""Two services with the same trouble are two different things, also to a reader of the text."""


@dataclass(slots=True)
class Fields:
    """The fields of one object by their part, and which of them need not be in the text. `inner`:
    path, fields and shape of the records inside its message, from the outside in."""

    data: dict[str, Any]
    shape: Shape
    mapped: Mapping[str, str]
    inner: list[tuple[Path, dict[str, Any], Shape]] = field(default_factory=list)
    taken: list[Path] = field(default_factory=list)

    @classmethod
    def of(cls, data: dict[str, Any], mapped: Mapping[str, str]) -> Fields:
        """The fields of a record, with what is inside its message."""
        shape = shape_of(tuple(data))
        data, paths = opened(data, shape)
        inner = []
        for path in paths:
            inside: dict[str, Any] = reduce(lambda at, name: at[name], path, data)
            inner.append((path, inside, shape_of(tuple(inside))))
        return cls(data, shape, mapped, inner)

    @property
    def operation(self) -> bool:
        """Whether a field is one that only operations have."""
        return self.shape.operation or any(shape.operation for _, _, shape in self.inner)

    @property
    def feedback(self) -> bool:
        """Whether a field is called as feedback is."""
        return self.shape.feedback or any(shape.feedback for _, _, shape in self.inner)

    def holds(self, part: str) -> bool:
        """Whether a field can be `part` by its name."""
        return bool(self.shape.of(part)) or any(shape.of(part) for _, _, shape in self.inner)

    def candidates(self, part: str) -> Iterator[tuple[Path, Any]]:
        """Paths and values that can be `part`, the mapped one first. The level is the innermost
        record's: what passes it on has one of its own at most by default."""
        if part in self.mapped and (found := at_path(self.data, self.mapped[part])):
            yield found
        inside = [
            ((*path, name), data[name])
            for path, data, shape in self.inner
            for name in shape.of(part)
        ]
        if part == "level":
            yield from inside[::-1]
        for name in self.shape.of(part):
            yield (name,), self.data[name]
        if part != "level":
            yield from inside
        if part == "level" and (found := at_path(self.data, "log.level")):
            yield found

    def times(self) -> Iterator[tuple[tuple[Path, ...], Any]]:
        """Like `candidates`, with a day and a time of day in two fields put together."""
        by_plain = {plain(name): name for name in self.shape.of("time")}
        day, clock = by_plain.get("date") or by_plain.get("日期"), by_plain.get("time")
        if day and clock and "time" not in self.mapped:
            both = self.data[day], self.data[clock]
            if all(isinstance(value, str) for value in both):
                yield ((day,), (clock,)), " ".join(both)
        for path, value in self.candidates("time"):
            yield (path,), value

    def turns(self) -> list[Any] | None:
        """The turns, if this is a conversation."""
        if "text" in self.mapped:
            # The messages of a chat were joined: there its text is theirs.
            found = at_path(self.data, self.mapped["text"])
            if found is not None:
                turns = json_in(found[1])
                return turns if are_turns(turns) else None
        for data, shape in ((self.data, self.shape), *(level[1:] for level in self.inner)):
            if turns := find_turns(data, shape):
                return turns
        return None

    def transcript(self) -> str | None:
        """A text with several speakers in it."""
        for part in ("turns", "message", "feedback"):
            for _, value in self.candidates(part):
                if isinstance(value, str) and is_transcript(value):
                    return value
        return None

    def take_names(self) -> dict[str, str]:
        """User, session, service and host, as far as there are any."""
        names = {}
        for part in _NAMES:
            found = self._mapped_name(part) or self._named(part)
            if found is not None:
                names[part] = found[1]
                if part not in _STAYS_IN_TEXT:
                    self.taken.append(found[0])
        return names

    def _named(self, part: str) -> tuple[Path, str] | None:
        if found := named(self.data, self.shape, part):
            return found
        for path, data, shape in self.inner:
            if found := named(data, shape, part):
                return (*path, *found[0]), found[1]
        return None

    def _mapped_name(self, part: str) -> tuple[Path, str] | None:
        found = at_path(self.data, self.mapped[part]) if part in self.mapped else None
        if found is None or isinstance(found[1], Mapping | list):
            return None
        name = scalar(found[1])
        return (found[0], name) if name else None

    def opinion(self, hide: Hide) -> str:
        """A user's own words: a title, if there is one, and the text, or the list or the object
        that stands for it."""
        text = self._first_text("feedback")[1]
        if not text:
            mapped = at_path(self.data, self.mapped.get("text", ""))
            values = (mapped or ((), None), *self.candidates("feedback"))
            inside = (value for _, value in values if isinstance(value, list | Mapping))
            text = next(filter(None, (key_values(value, hide) for value in inside)), "")
        title = self._first_text("title")[1] if "text" not in self.mapped else ""
        return "\n".join(filter(None, (title if title not in text else "", text)))

    def message(self) -> tuple[Path, str]:
        """The message of an operation record and where it stands; "" where it has none."""
        return self._first_text("message")

    def _first_text(self, part: str) -> tuple[Path, str]:
        if "text" in self.mapped and part != "title":
            found = at_path(self.data, self.mapped["text"])
            if found and isinstance(found[1], str) and found[1].strip():
                return found[0], found[1].strip()
        for path, value in self.candidates(part):
            if isinstance(value, str) and value.strip():
                return path, value.strip()
        return (), ""
