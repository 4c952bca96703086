"""One raw record cleaned, for tests."""

from __future__ import annotations

from datetime import UTC, date
from typing import Any, Literal

from job.clean.cleaner import Cleaner, CleanSettings
from job.mask.masking import Masker
from job.records import Raw, Record, SliceCounts

MASKER = Masker(b"k" * 32)


def cleaner(**changes: Any) -> Cleaner:
    plain: dict[str, Any] = {"reference": date(2026, 3, 10), "zone": UTC, "masker": MASKER}
    return Cleaner(CleanSettings(**(plain | changes)), SliceCounts("day.log", 0))


def record(value: Any, **changes: Any) -> Record:
    form: Literal["text", "json"] = "text" if isinstance(value, str) else "json"
    cleaned = cleaner(**changes).clean(Raw("day.log", 7, value, form))
    assert isinstance(cleaned, Record)
    return cleaned
