"""What one way of a trial was answered, and at which places in its packs.

Invariant: a trial is given back nothing but what it was answered itself, each of its ways on its
own, and not after a day: what it compares are answers of the same model. A row in the store of
answers is one as any other, with the place beside the answer, under a key that only this way of
this trial has.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import orjson

from job.analyse.stored import AskSettings, Store, record_key
from job.compare.positions import Place
from job.pack.packing import Item
from job.records import Record
from job.validate import Verdict
from serve.ask.answers import answer_key

GIVEN_BACK_SECONDS = 86_400.0
"""How old an answer may be: by tomorrow the model may be another one under the same name."""
_PLACE = "place"


@dataclass(slots=True)
class Places:
    """Where each record stood in the first whole answer to a pack that held it. What was cut off
    says nothing of positions: whatever came last is missing from it."""

    held: dict[str, Place] = field(default_factory=dict)
    _packs: int = 0

    def see(self, items: Sequence[Item], verdict: Verdict) -> None:
        """What the reply to a pack of `items` is worth."""
        if not verdict.whole or len(items) == 1:
            return
        self._packs += 1
        for position, item in enumerate(items, 1):
            if not item.part:
                came = str(position) in verdict.answers
                place = Place(self._packs, position, len(items), came)
                self.held.setdefault(item.record.id, place)

    def give_back(self, record: str, place: Place) -> None:
        """Where a record stood in an earlier command of the trial."""
        self._packs = max(self._packs, place.pack)
        self.held[record] = place


@dataclass(slots=True)
class Kept:
    """The store that one way of a trial is asked with. `rows`: its answers, as they would be stored
    if they were a run's. `store`: where they are safe meanwhile, under keys of `name`; None: they
    are lost if the trial is stopped. `clock`: seconds since the epoch."""

    name: str = ""
    store: Store | None = None
    clock: Callable[[], float] = time.time
    rows: dict[bytes, bytes] = field(default_factory=dict)
    places: Places = field(default_factory=Places)
    _records: Mapping[bytes, str] = field(default_factory=dict)

    def begin(self, records: Sequence[Record], ask: AskSettings) -> None:
        """`records` will be asked about as `ask` says."""
        self._records = {record_key(record, ask): record.id for record in records}

    async def get_many(
        self, keys: Sequence[bytes], since: float | None = None
    ) -> dict[bytes, bytes]:
        """Those of `keys` that an earlier command of this trial was answered."""
        del since
        if self.store is None:
            return {}
        own = {self._own(key): key for key in keys}
        held = await self.store.get_many(list(own), self.clock() - GIVEN_BACK_SECONDS)
        found = {own[key]: self._unwrapped(own[key], value) for key, value in held.items()}
        self.rows |= found
        return found

    async def put_many(self, items: Sequence[tuple[bytes, bytes]], replace: bool = False) -> None:
        """Keep `items`; returns when they are safe."""
        del replace
        self.rows.update(items)
        if self.store is not None:
            rows = [(self._own(key), self._wrapped(key, value)) for key, value in items]
            await self.store.put_many(rows, replace=True)

    def _own(self, key: bytes) -> bytes:
        return answer_key("trial", self.name, key.hex())

    def _wrapped(self, key: bytes, value: bytes) -> bytes:
        place = self.places.held.get(self._records.get(key, ""))
        if place is None:
            return value
        return orjson.dumps(orjson.loads(value) | {_PLACE: asdict(place)})

    def _unwrapped(self, key: bytes, value: bytes) -> bytes:
        """The answer; its place is noted. A damaged row stays what it is: nobody takes it for an
        answer."""
        try:
            row = orjson.loads(value)
            place = row.pop(_PLACE, None)
            if place is not None and key in self._records:
                self.places.give_back(self._records[key], Place(**place))
        except (orjson.JSONDecodeError, AttributeError, TypeError):
            return value
        return orjson.dumps(row)
