"""What `fupan answers` shows, in words and as JSON. Pure.

Invariant: both say the same; a number that is not known is left out of the words and null in JSON.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from job.answers.recalls import NAME, Recalls, decode_recalls
from job.answers.words import lasting_words
from serve.ask.answers import Answers
from serve.ask.answers_redis import AnswersInRedis, RedisAnswers
from serve.ask.answers_repair import DAMAGE
from serve.ask.answers_upkeep import Contents, Forgotten

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def contents_json(held: Contents, store: Answers | RedisAnswers) -> dict[str, Any]:
    """What `fupan answers stats --json` prints."""
    recalls = _recalls(store)
    return {
        "path": str(held.path),
        "version": held.version,
        "bytes": held.size,
        "answers": held.answers,
        "models": [{"model": name, "answers": n} for name, n in held.models.items()],
        "oldest": _moment(held.oldest),
        "newest": _moment(held.newest),
        "learned": [
            {"name": name, "bytes": size, "kept_at": _moment(at)}
            for name, (size, at) in _learned(held).items()
        ],
        "recalled": recalls
        and {
            "records": recalls.recalled,
            "runs": recalls.runs,
            "since": _moment(recalls.since),
            "saved": recalls.saved(),
        },
        "lasting": held.lasting and asdict(held.lasting),
        "damaged": [
            {
                "file": copy.path.name,
                "bytes": copy.size,
                "salvaged": copy.damage and copy.damage.salvaged,
            }
            for copy in held.copies
        ],
    }


def contents_lines(held: Contents, store: Answers | RedisAnswers) -> list[str]:
    """The same in words."""
    lines = [
        f"path      {held.path}",
        f"version   {held.version}",
        f"size      {_bytes(held.size)}",
        f"answers   {held.answers:,}",
    ]
    if held.oldest is not None and held.newest is not None:
        lines[-1] += f", stored {_day(held.oldest)} to {_day(held.newest)}"
    lines += [
        f"  {n:,} by {name or 'a model that is not named'}" for name, n in held.models.items()
    ]
    learned = _learned(held)
    size = sum(size for size, _ in learned.values())
    lines.append(f"learned   {len(learned):,} entries, {_bytes(size)}")
    lines += [f"  {name}, {_day(at)}" for name, (_, at) in learned.items()]
    recalls = _recalls(store)
    if recalls is not None:
        saved = recalls.saved()
        lines.append(
            f"recalled  {recalls.recalled:,} times in {recalls.runs:,} runs since "
            f"{_day(recalls.since)}: about {saved['requests']:,} calls, {saved['tokens_in']:,} "
            f"tokens in and {saved['tokens_out']:,} out not paid again"
        )
    if isinstance(held.path, AnswersInRedis) and held.lasting is not None:
        lines += [f"warning   {words}" for words in lasting_words(held.path, held.lasting)]
    for copy in held.copies:
        taken = f", {copy.damage.salvaged:,} answers taken over" if copy.damage else ""
        lines.append(f"damaged   {copy.path.name}: {_bytes(copy.size)}{taken}; delete it at will")
    return lines


def forgotten_line(forgotten: Forgotten, dry_run: bool) -> tuple[dict[str, Any], list[str]]:
    """What `fupan answers prune` prints: as JSON, and in words."""
    before, after = forgotten.size or (None, None)
    shown = {
        "answers": forgotten.answers,
        "learned": forgotten.learned,
        "dry_run": dry_run,
        "bytes_before": before,
        "bytes_after": after,
        "disk_full": forgotten.full,
    }
    what = f"{forgotten.answers:,} answers and {forgotten.learned:,} learned entries"
    if dry_run:
        return shown, [f"{what} would be forgotten"]
    if before is None or after is None:
        return shown, [f"{what} forgotten"]
    lines = [f"{what} forgotten; {_bytes(before)} before, {_bytes(after)} now"]
    if forgotten.full:
        lines.append("the disk had no room to write the store anew; later answers fill the gaps")
    return shown, lines


def _learned(held: Contents) -> dict[str, tuple[int, int]]:
    return {name: entry for name, entry in held.learned.items() if not name.startswith(DAMAGE)}


def _recalls(store: Answers | RedisAnswers) -> Recalls | None:
    value = store.learned(NAME)
    return decode_recalls(value, time.time()) if value is not None else None


def _moment(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(int(at), UTC).isoformat()


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def _bytes(size: float) -> str:
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
