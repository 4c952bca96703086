"""Two ways of asking about the same records, and the first once more about a part of them.

The part shows the model's own noise: how far it agrees with itself when nothing was changed. It
costs a fifth of the first way, and without it nobody could say whether an agreement of 90 % is
good or bad: some models answer nine records of ten the same way twice.

Invariant: one way is asked after the other, so that the minutes of each are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from job.compare.comparison import Comparison, Side, compare, texts_of_sides
from job.compare.meaning import Meaning
from job.embed import open_embedder
from job.records import Record
from job.themes.calibrate import space_of
from job.trial.kept import Kept
from job.trial.ways import Watch, Way, ask_way
from serve.ask.limiter_host import Permits
from serve.ask.spend_host import Spend

PART = 0.2
PART_LEAST = 60
PART_MOST = 200
"""Records asked about twice in the first way: a fifth of them, within these bounds."""

Sides = tuple[Side, Side, Side]
"""What the first way gives, the second, and the first again."""
Say = Callable[[str], None]
"""Told what begins, in words."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Both ways. `keeping`: gives the store of the way with this name; `kept`: that of each way, by
    its name."""

    first: Way
    second: Way
    keeping: Callable[[str], Kept] = Kept
    kept: dict[str, Kept] = field(default_factory=dict)

    async def ask(
        self,
        records: Sequence[Record],
        permits: Permits,
        spend: Spend,
        watch: Watch | None = None,
        say: Say = lambda words: None,
        of: int = 0,
    ) -> Sides:
        """What the first way gives, the second, and the first again about a part. Raises as
        `ask_way` does. The second comes first: it is the cheap one, and the new one."""
        say(f"asking {len(records):,} records: {self.second.name}")
        second = await self._ask(self.second, records, permits, spend, watch, of)
        say(f"asking the same {len(records):,} records: {self.first.name}")
        first = await self._ask(self.first, records, permits, spend, watch, of)
        part = records[: part_of(len(records))]
        say(f"asking {len(part):,} of them once more: {self.first.name}")
        once_more = replace(self.first, name=f"{self.first.name} again")
        return first, second, await self._ask(once_more, part, permits, spend, watch, of)

    async def _ask(
        self,
        way: Way,
        records: Sequence[Record],
        permits: Permits,
        spend: Spend,
        watch: Watch | None,
        of: int,
    ) -> Side:
        store = self.kept.setdefault(way.name, self.keeping(way.name))
        return await ask_way(way, records, permits, spend, store, watch, of)


def part_of(records: int) -> int:
    """How many of so many records are asked about twice."""
    return min(records, PART_MOST, max(PART_LEAST, round(PART * records)))


def compare_sides(
    first: Side, second: Side, again: Side, about: Mapping[str, Any] | None = None
) -> Comparison:
    """Compare them, by the embedding model of the themes. `about`: see `compare`."""
    texts = texts_of_sides(first, second, again)
    meaning = Meaning()
    if any(texts.values()):
        name, encode = open_embedder()
        meaning = Meaning.of(texts, encode, space_of(name, encode))
    return compare(first, second, again, meaning, about)
