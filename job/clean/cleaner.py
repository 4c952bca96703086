"""A raw record of any shape -> a Record, a Rejected or a Skipped.

Invariant: every raw record becomes exactly one of the three, and the counts say of which; a record
depends on its own bytes, its source and position and the settings, on nothing else. Nothing is cut
from its text, and nothing private is left in it.

Reasons of rejection: `empty` (nothing to read in it), and those that reading gives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, tzinfo
from functools import lru_cache
from hashlib import blake2b

from job.clean.draft import Draft, Drafting
from job.estimates.reserve import RESERVE_TOKENS
from job.fold.template import template
from job.mask.masking import Masker
from job.read.rejections import EXCERPT_CHARACTERS as READ_CHARACTERS
from job.records import Kind, Lane, Raw, Record, Rejected, SliceCounts
from job.text import language, normalise
from serve.ask.tokens import count

SLOW_OVER = 1000
"""Tokens of a record on the wire and of its answer above which it goes to the slow lane."""
LINE_TOKENS = 20
"""Of a record's line on the wire beside its text: id, time, quotes and braces."""
_NAMES = 4096
"""Names of users, services and hosts whose masking is remembered in a slice."""
_SHORT_NAME = 200
"""Characters of such a name."""
EXCERPT_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that a filter left out; `reason` is the filter: since, until, skip or sample."""

    source: str
    position: int
    reason: str


@dataclass(frozen=True, slots=True)
class CleanSettings:
    """How the records of one source are understood.

    `reference` and `zone` fill in what a time leaves open. `kind` overrides what the shape says;
    `map` names the field (dotted where it is inside others) of text, time, user, session, service,
    host, level or rating. `since` (from then on) and `until` (before then) leave out records by
    their time, those without one stay; `skip` leaves out those in which one of its words or
    regular expressions is found.
    """

    reference: date
    zone: tzinfo
    masker: Masker
    kind: Kind | None = None
    map: Mapping[str, str] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None
    skip: tuple[str, ...] = ()


class Cleaner:
    """Cleans the records of one slice and counts them in `counts`. `sampled`: the greatest id
    that a sample keeps, None for all."""

    def __init__(
        self, settings: CleanSettings, counts: SliceCounts, sampled: str | None = None
    ) -> None:
        self.counts = counts
        self._sampled = sampled
        self._hidden: dict[str, int] = {}
        self._settings = settings
        self._skip = _any_of(settings.skip)
        self._first: datetime | None = None
        self._last: datetime | None = None
        self._mask_name = lru_cache(_NAMES)(lambda name: settings.masker.mask(normalise(name)[0]))
        self._drafting = Drafting(
            settings.reference, settings.zone, settings.kind, settings.map, self._hide
        )

    def clean(self, raw: Raw | Rejected) -> Record | Rejected | Skipped:
        """One record as it came from reading. What reading rejected stays so, masked."""
        self.counts.read += 1
        if isinstance(raw, Rejected):
            return self._rejected(raw)
        self._hidden.clear()
        value, flags = normalise(raw.value) if isinstance(raw.value, str) else (raw.value, ())
        draft = self._drafting.draft(value)
        draft.text, more = normalise(draft.text)
        record_id = _id(raw.source, raw.position, raw.copy)
        if reason := self._left_out(record_id, value, draft):
            self.counts.skipped += 1
            _add(self.counts.skipped_by, reason)
            return Skipped(raw.source, raw.position, reason)
        if not draft.text:
            return self._rejected(Rejected(raw.source, raw.position, "empty"))
        record = self._record(record_id, raw, draft, (*raw.flags, *flags, *more, *draft.flags))
        self._count(record)
        return record

    def _record(self, record_id: str, raw: Raw, draft: Draft, flags: tuple[str, ...]) -> Record:
        text = self._masked(draft.text)
        tokens = count(text)
        lane: Lane = "slow" if tokens + LINE_TOKENS + RESERVE_TOKENS > SLOW_OVER else "fast"
        names = {part: self._named(name) for part, name in draft.names.items()}
        for kind, number in self._hidden.items():
            _add(self.counts.masked, kind, number)
        return Record(
            id=record_id,
            source=raw.source,
            position=raw.position,
            time=draft.time,
            kind=draft.kind,
            lang=language(text),
            text=text,
            user=names.get("user") or None,
            session=names.get("session") or None,
            service=names.get("service") or None,
            host=names.get("host") or None,
            level=draft.level,
            rating=draft.rating,
            tokens=tokens,
            lane=lane,
            digest=_digest(draft, text),
            flags=tuple(sorted(set(flags))) if flags else (),
        )

    def _left_out(self, record_id: str, value: object, draft: Draft) -> str | None:
        """The filter that leaves this record out, if one does."""
        settings = self._settings
        if draft.time is not None:
            if settings.since is not None and draft.time < settings.since:
                return "since"
            if settings.until is not None and draft.time >= settings.until:
                return "until"
        searched = value if isinstance(value, str) else draft.text
        if self._skip is not None and self._skip.search(searched):
            return "skip"
        return "sample" if self._sampled is not None and record_id > self._sampled else None

    def _rejected(self, rejected: Rejected) -> Rejected:
        self.counts.rejected += 1
        _add(self.counts.rejected_by, rejected.reason)
        return replace(
            rejected, detail=self._masked(rejected.detail), excerpt=self._excerpt(rejected.excerpt)
        )

    def _excerpt(self, text: str) -> str:
        """The beginning of what was rejected. Where reading cut it, what stands last may be part
        of something private: there is more of it than is ever shown."""
        shown, _ = normalise(text)
        masked = self._masked(shown)
        if len(text) > READ_CHARACTERS // 2:
            masked = masked[:-EXCERPT_CHARACTERS]
        return masked[:EXCERPT_CHARACTERS]

    def _masked(self, text: str) -> str:
        text, found = self._settings.masker.mask(text)
        for kind, number in found.items():
            _add(self.counts.masked, kind, number)
        return text

    def _named(self, name: str) -> str:
        """The name of a user, a session, a service or a host, masked."""
        mask = self._mask_name if len(name) <= _SHORT_NAME else self._mask_name.__wrapped__
        name, found = mask(name)
        for kind, number in found.items():
            _add(self.counts.masked, kind, number)
        return name

    def _hide(self, name: str, text: str) -> str:
        """Credentials by the name of their field; counted once the record is not left out."""
        text, found = self._settings.masker.mask_named(name, text)
        for kind, number in found.items():
            _add(self._hidden, kind, number)
        return text

    def _count(self, record: Record) -> None:
        counts = self.counts
        counts.records += 1
        counts.tokens += record.tokens
        _add(counts.kinds, record.kind)
        _add(counts.langs, record.lang)
        for flag in record.flags:
            _add(counts.flags, flag)
        time = record.time
        if time is not None:
            if self._first is None or time < self._first:
                self._first, counts.first = time, time.isoformat()
            if self._last is None or time > self._last:
                self._last, counts.last = time, time.isoformat()


def _add(counts: dict[str, int], name: str, number: int = 1) -> None:
    counts[name] = counts.get(name, 0) + number


def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    """One expression for all: each as the words it is, and as the expression it may be."""
    alternatives = []
    for pattern in patterns:
        alternatives.append(re.escape(pattern))
        with suppress(re.error):
            re.compile(pattern)
            alternatives.append(f"(?:{pattern})")
    return re.compile("|".join(alternatives)) if alternatives else None


def _id(source: str, position: int, copy: int) -> str:
    place = f"{source}\0{position}\0{copy}" if copy else f"{source}\0{position}"
    digest = blake2b(place.encode("utf-8", "surrogatepass"), digest_size=8)
    return "r" + digest.hexdigest()


def _digest(draft: Draft, text: str) -> str:
    """What must be equal to be folded: kind, level, rating and the text, of an operation with
    `<*>` for what varies."""
    said = template(text) if draft.kind == "operation" else text
    key = f"{draft.kind}\0{draft.level}\0{draft.rating}\0{said}"
    return blake2b(key.encode(), digest_size=16).hexdigest()
