"""Records for tests."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from job.records import Record


def record(text: str = "the disk is full", **fields: Any) -> Record:
    """A record whose id and digest come from its text and source."""
    source = fields.pop("source", "app.log")
    digest = hashlib.blake2b(f"{fields.get('kind')}{text}".encode(), digest_size=16).hexdigest()
    return Record(
        id="r" + hashlib.blake2b(f"{source}{text}".encode(), digest_size=8).hexdigest(),
        source=source,
        position=fields.pop("position", 0),
        time=fields.pop("time", datetime(2026, 3, 14, 10, 0, tzinfo=UTC)),
        kind=fields.pop("kind", "operation"),
        lang=fields.pop("lang", "en"),
        text=text,
        tokens=fields.pop("tokens", len(text) // 4 + 1),
        digest=fields.pop("digest", digest),
        **fields,
    )
