"""One record on its way to its answer: its parts, those who wait for the same answer, its end.

Invariant: an entry ends exactly once (answered, failed or unasked), and its end is that of all who
follow it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

from job.analyse.parts import merge_answers
from job.analyse.stored import Stored, for_record
from job.pack.packing import Item
from job.records import Answer, Record, Result, Via


@dataclass(slots=True, eq=False)
class Entry:
    """A record that waits. `open`: its items that have no answer yet; `followers`: entries of other
    records with the same key, which end as this one does; `future`: its Result; `rank`: where it
    stands in the order of importance, None: not known."""

    record: Record
    key: bytes
    future: asyncio.Future[Result]
    open: set[Item] = field(default_factory=set)
    followers: list[Entry] = field(default_factory=list)
    review: bool = False
    rank: int | None = None
    _kept: list[tuple[tuple[int, ...], Answer]] = field(default_factory=list)
    _models: dict[str, None] = field(default_factory=dict)

    @property
    def parts(self) -> int:
        """Parts that were answered or wait for it."""
        return len(self.open) + len(self._kept)

    def keep(self, item: Item, answer: Answer, review: bool, model: str) -> bool:
        """Take the answer of `model` to one item; True when it was the last that was missing."""
        self.open.discard(item)
        self._models[model] = None
        self._kept.append((item.part, answer))
        self.review = self.review or review
        return not self.open and not self.future.done()

    def keep_drafts(self) -> bool:
        """Take the usable answers that lack a field to all parts that wait; True when each of them
        had one. Otherwise nothing is taken."""
        drafts = [(item, item.draft) for item in self.open if item.draft is not None]
        if len(drafts) < len(self.open) or self.future.done():
            return False
        for item, draft in drafts:
            self.keep(item, draft, True, item.drafted_by)
        return True

    def merged(self) -> Stored:
        """The answer of all parts, and the models that gave it."""
        ordered = [answer for _, answer in sorted(self._kept, key=lambda kept: kept[0])]
        answer = ordered[0] if len(ordered) == 1 else merge_answers(ordered)
        return Stored(answer, self.review, ", ".join(self._models))

    def answer(self, stored: Stored) -> None:
        """End with an answer that was paid for; those who follow recall it."""
        self._end_with(stored, "answered")
        for entry in self.followers:
            entry._end_with(stored, "recalled")

    def recall(self, stored: Stored) -> None:
        """End with an answer from the store."""
        for entry in (self, *self.followers):
            entry._end_with(stored, "recalled")

    def fail(self, reason: str, message: str | None, attempts: int) -> None:
        """End without an answer."""
        for entry in (self, *self.followers):
            entry._end(
                Result(
                    entry.record,
                    "failed",
                    reason=reason,
                    provider_message=message,
                    attempts=attempts,
                )
            )

    def leave_unasked(self, reason: str) -> None:
        """End because the run stops."""
        for entry in (self, *self.followers):
            entry._end(Result(entry.record, "unasked", reason=reason))

    def _end_with(self, stored: Stored, via: Via) -> None:
        answer = for_record(stored.answer, self.record.text)
        flags = tuple(sorted({*self.record.flags, *answer.flags}))
        self._end(
            Result(
                replace(self.record, flags=flags),
                "review" if stored.review else via,
                answer.outcome,
                answer.issues,
                model=stored.model,
                reason="required_field_empty" if stored.review else None,
            )
        )

    def _end(self, result: Result) -> None:
        if not self.future.done():
            self.future.set_result(result)
