"""What the pages say of the size of packs: the one in use and why, and what became of each.

Invariant: made from the report alone; what each size counts adds up to all packs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from job.report.words import Words

Rows = list[tuple[str, Any]]


def pack_rows(report: Mapping[str, Any], words: Words) -> Rows:
    """The size in use, and what came of the sizes that were; nothing where no pack was sent."""
    packs = report["timing"].get("packs")
    if not packs or not packs["by_size"]:
        return []
    size = words("pack_sizes", **packs["tokens"])
    rows: Rows = [
        (words("pack_in_use"), words.list([size, words.name("pack_why", packs["why"])])),
    ]
    if packs["limit"] is not None:
        rows.append((words("pack_limit"), words.name("pack_limit", packs["limit"])))
    used, others = _by_use(packs)
    rows += [(words("pack_of", n=seen["tokens"]), _did([seen], words)) for seen in used]
    if others:
        rows.append((words("pack_others"), _did(others, words)))
    return rows


def _by_use(packs: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Packs as big as the fast lane was to have them, and the others."""
    sizes = [seen["tokens"] for seen in packs["by_size"]]
    wanted = {
        min(sizes, key=lambda size: abs(math.log(size / change["tokens"])))
        for change in packs["changes"]
    }
    used = [seen for seen in packs["by_size"] if seen["tokens"] in wanted]
    return used, [seen for seen in packs["by_size"] if seen["tokens"] not in wanted]


def _did(seen: Sequence[Mapping[str, Any]], words: Words) -> str:
    total = {name: sum(one[name] for one in seen) for name in ("calls", "rows", "again", "seconds")}
    return words(
        "pack_did",
        calls=total["calls"],
        rows=total["rows"],
        again=total["again"],
        seconds=total["seconds"] / total["calls"],
    )
