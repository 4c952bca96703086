"""What a raw record says: its kind, its text and its fields, found from its shape.

Invariant: what becomes a field (time, level, rating, user, session, host) is not in the text as
well, unless it could not be understood; then it stays in the text. Everything else of an operation
record is in its text; of a conversation its turns, of feedback its words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from typing import Any

from job.clean.fields import Fields
from job.clean.head import read_head
from job.clean.nested import record_behind
from job.clean.render import Hide, key_values
from job.clean.scales import level_of, rating_of
from job.clean.shape import Path, plain
from job.clean.turns import are_turns, is_transcript, render_turns, times_of
from job.records import Kind
from job.times import parse


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
        fields = Fields.of(data, self.mapped)
        turns = fields.turns()
        draft = Draft("operation", "", flags=["nested"] if fields.inner else [])
        self._set_time(draft, fields, turns)
        self._set_scales(draft, fields)
        draft.names = fields.take_names()
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

    def _set_time(self, draft: Draft, fields: Fields, turns: Iterable[Any] | None) -> None:
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

    def _times_inside(self, fields: Fields) -> Iterator[Path]:
        """Where a record inside another says its own time, which is the other's but for what
        passing it on took."""
        for prefix, data, shape in fields.inner:
            for name in shape.of("time"):
                if parse(data[name], self.reference, self.zone) is not None:
                    yield (*prefix, name)

    def _set_scales(self, draft: Draft, fields: Fields) -> None:
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

    def _set_message(self, draft: Draft, fields: Fields) -> None:
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
                if head.level not in (None, draft.level):
                    # As of a record inside: the level of what passes it on stays in the text.
                    levels = dict(fields.candidates("level"))
                    fields.taken = [path for path in fields.taken if path not in levels]
                    draft.level = head.level
        rest = key_values(fields.data, self.hide, fields.taken)
        joint = "\n" if "\n" in message else " "
        draft.text = joint.join(filter(None, (message, rest)))
        if not message and not fields.operation and rest:
            draft.flags.append("unmapped")


def _kind(fields: Fields, draft: Draft, conversation: bool) -> Kind:
    if conversation:
        return "conversation"
    if draft.rating is not None and draft.level is None and fields.holds("feedback"):
        return "feedback"
    if draft.level is not None or fields.operation:
        return "operation"
    return "feedback" if fields.feedback else "operation"
