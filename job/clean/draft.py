"""What a raw record says: its kind, its text and its fields, found from its shape.

Invariant: what becomes a field (time, level, rating, user, session, host) is not in the text as
well, unless it could not be understood; then it stays in the text. Everything else of an operation
record is in its text; of a conversation its turns, of feedback its words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from functools import reduce
from typing import Any

from job.clean.head import read_head
from job.clean.nested import json_in, opened, record_behind
from job.clean.render import Hide, key_values, scalar
from job.clean.scales import level_of, rating_of
from job.clean.shape import Path, Shape, at_path, named, plain, shape_of
from job.clean.turns import are_turns, find_turns, is_transcript, render_turns, times_of
from job.records import Kind
from job.times import parse

_NAMES = ("user", "session", "service", "host")
_STAYS_IN_TEXT = ("service",)
"""Two services with the same trouble are two different things, also to a reader of the text."""


@dataclass(slots=True)
class Draft:
    """A record before it is normalised and masked. `names`: user, session, service and host."""

    kind: Kind
    text: str
    time: datetime | None = None
    level: str | None = None
    rating: float | None = None
    names: dict[str, str] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Drafting:
    """How the raw records of one source become drafts; the fields are those of CleanSettings."""

    reference: date
    zone: tzinfo
    kind: Kind | None
    mapped: Mapping[str, str]
    hide: Hide

    def draft(self, value: dict[str, Any] | list[Any] | str) -> Draft:
        """What a raw record's value says."""
        if isinstance(value, str):
            return self._from_text(value)
        if isinstance(value, list):
            if are_turns(value):
                return Draft(self.kind or "conversation", render_turns(value, self.hide))
            return Draft(self.kind or "operation", key_values(value, self.hide), flags=["unmapped"])
        return self._from_object(value)

    def _from_text(self, text: str) -> Draft:
        head = read_head(text, self.reference, self.zone)
        if head.time is None and self.kind != "operation" and is_transcript(text):
            return Draft(self.kind or "conversation", text)
        names = {"host": head.host, "service": head.service}
        draft = Draft(
            self.kind or "operation",
            head.text,
            head.time,
            head.level,
            names={part: name for part, name in names.items() if name},
        )
        if head.text.endswith("}") and (parts := record_behind(head.text)):
            self._open(draft, *parts)
        return draft

    def _open(self, draft: Draft, before: str, value: dict[str, Any]) -> None:
        """A line whose message is a JSON record says what that does; its head stands before it."""
        inner = self._from_object(value)
        draft.kind = inner.kind
        draft.text = f"{before} {inner.text}".strip()
        draft.time = draft.time or inner.time
        draft.level = inner.level or draft.level
        draft.rating = inner.rating
        draft.names |= inner.names
        draft.flags += [*inner.flags, "nested"]

    def _from_object(self, data: dict[str, Any]) -> Draft:
        fields = _Fields.of(data, self.mapped)
        turns = fields.turns()
        draft = Draft("operation", "", flags=["nested"] if fields.inner else [])
        self._set_time(draft, fields, turns)
        self._set_scales(draft, fields)
        fields.set_names(draft)
        a_log = self.kind == "operation" or draft.level is not None or fields.operation
        said = fields.transcript() if turns is None and not a_log else None
        draft.kind = self.kind or _kind(fields, draft, bool(turns or said))
        if turns is not None:
            draft.text = render_turns(turns, self.hide)
        elif said is not None:
            draft.text = said
        elif draft.kind == "feedback" and (fields.holds("feedback") or "text" in self.mapped):
            draft.text = fields.opinion(self.hide)
        else:
            self._set_message(draft, fields)
        return draft

    def _set_time(self, draft: Draft, fields: _Fields, turns: Iterable[Any] | None) -> None:
        seen = False
        for paths, value in fields.times():
            draft.time = parse(value, self.reference, self.zone)
            if draft.time is not None:
                fields.taken.extend(paths)
                fields.taken.extend(self._times_inside(fields))
                return
            seen = seen or value not in (None, "")
        for value in times_of(turns or ()):
            draft.time = parse(value, self.reference, self.zone)
            if draft.time is not None:
                return
        if seen:
            draft.flags.append("bad_time")

    def _times_inside(self, fields: _Fields) -> Iterator[Path]:
        """Where a record inside another says its own time, which is the other's but for what
        passing it on took."""
        for prefix, data, shape in fields.inner:
            for name in shape.of("time"):
                if parse(data[name], self.reference, self.zone) is not None:
                    yield (*prefix, name)

    def _set_scales(self, draft: Draft, fields: _Fields) -> None:
        for path, value in fields.candidates("level"):
            draft.level = level_of(value, plain(path[-1]))
            if draft.level is not None:
                fields.taken.append(path)
                break
        for path, value in fields.candidates("rating"):
            draft.rating = rating_of(value)
            if draft.rating is not None:
                fields.taken.append(path)
                break

    def _set_message(self, draft: Draft, fields: _Fields) -> None:
        """An operation's text: its message first, without a time and level of its own, then the
        other fields."""
        path, message = fields.message()
        if message:
            fields.taken.append(path)
            head = read_head(message, self.reference, self.zone)
            own_time = head.time is not None and (draft.time is None or head.level is not None)
            own_level = head.time is None and draft.level is None and head.level is not None
            if own_time or own_level:
                message = head.text
                draft.time = draft.time or head.time
                draft.level = draft.level or head.level
        rest = key_values(fields.data, self.hide, fields.taken)
        joint = "\n" if "\n" in message else " "
        draft.text = joint.join(filter(None, (message, rest)))
        if not message and not fields.operation and rest:
            draft.flags.append("unmapped")


@dataclass(slots=True)
class _Fields:
    """The fields of one object by their part, and which of them need not be in the text. `inner`:
    path, fields and shape of the records inside its message, from the outside in."""

    data: dict[str, Any]
    shape: Shape
    mapped: Mapping[str, str]
    inner: list[tuple[Path, dict[str, Any], Shape]] = field(default_factory=list)
    taken: list[Path] = field(default_factory=list)

    @classmethod
    def of(cls, data: dict[str, Any], mapped: Mapping[str, str]) -> _Fields:
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

    def set_names(self, draft: Draft) -> None:
        """User, session, service and host."""
        for part in _NAMES:
            found = self._mapped_name(part) or self._named(part)
            if found is not None:
                draft.names[part] = found[1]
                if part not in _STAYS_IN_TEXT:
                    self.taken.append(found[0])

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


def _kind(fields: _Fields, draft: Draft, conversation: bool) -> Kind:
    if conversation:
        return "conversation"
    if draft.rating is not None and draft.level is None and fields.holds("feedback"):
        return "feedback"
    if draft.level is not None or fields.operation:
        return "operation"
    return "feedback" if fields.feedback else "operation"
