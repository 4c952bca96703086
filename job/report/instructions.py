"""What the report says of the user's own instructions, and of making them shorter.

Invariant: made from the report alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from job.report.words import Words


def instruction_rows(own: Mapping[str, Any] | None, words: Words) -> list[tuple[str, str]]:
    """(Name, words) of the instructions that a run was given beside ours; none without any."""
    if own is None:
        return []
    values = {name: own[name] for name in ("characters", "tokens", "hash")}
    rows = [(words("own_rules"), words("own_rules_are", line=own["first_line"], **values))]
    if own["compression"] is not None:
        rows.append((words("compressed"), compression_words(own["compression"], words)))
    return rows


def compression_words(compression: Mapping[str, Any], words: Words) -> str:
    """What came of making instructions shorter, in a sentence without its full stop."""
    if compression["used"]:
        key = "compressed_before" if compression["recalled"] else "compressed_now"
    else:
        key = f"not_compressed_{compression['reason']}"
    said = words(key, **{**compression, "n": compression["rules"]})
    spent = compression["tokens_spent"]
    if spent and not compression["used"]:
        said = words.list([said, words("compression_took", spent=spent)])
    return said
