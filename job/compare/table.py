"""A comparison as lines for a person. Pure.

Invariant: every number stands in the JSON of the comparison too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from job.compare.agreement import Agreement, Count, Field
from job.compare.comparison import Comparison, Side
from job.compare.positions import by_bin
from job.printable import printable

_LABELS: Mapping[Field, str] = {"issues": "number of issues"}
_ADVICE = {
    "fades": "ask one by one (--mode single) or try smaller packs (--pack-tokens); "
    "`fupan run --canary 10` decides by itself",
    "one_fades": "compare each side alone with being asked one by one, `fupan compare` without "
    "--with-model and --with-instructions: it says which one fades",
    "more_failed": "keep the first way; `fupan run` says why records fail in failed.jsonl",
    "more_review": "keep the first way",
    "differs": "keep the first way, or look at what differs before you change",
    "maybe_differs": "compare more records: --share",
    "too_few": "compare more records: --share",
    "short_packs": "compare more records, so that packs are as long as those of a run: --share",
}


def table(found: Comparison, sentence: str) -> list[str]:
    """The comparison in lines. `sentence`: the verdict's reason in words."""
    first, second = found.first.name, found.second.name
    lines = [
        *_costs(found),
        "",
        f"how often {second} says what {first} says, and what {first} repeats when it is asked",
        f"again about {len(found.again.results):,} of the records",
        *_columns(_agreements(found.agreement, found.noise)),
    ]
    lines += _positions(found)
    lines += ["", f"verdict   {found.verdict.word}: {sentence}"]
    if found.verdict.reason in _ADVICE:
        lines.append(f"to do     {_ADVICE[found.verdict.reason]}")
    return [printable(line) for line in lines]


def _costs(found: Comparison) -> list[str]:
    sides = found.first, found.second, found.again
    rows = [
        ("", *(side.name for side in sides)),
        ("records", *(f"{len(side.results):,}" for side in sides)),
        ("to review", *(_of(side.count("review"), len(side.results)) for side in sides)),
        ("failed", *(_of(side.count("failed"), len(side.results)) for side in sides)),
        ("calls", *(f"{side.calls.requests:,}" for side in sides)),
        ("tokens in", *(f"{side.calls.tokens_in:,}" for side in sides)),
        ("tokens out", *(f"{side.calls.tokens_out:,}" for side in sides)),
        ("minutes", *(f"{side.seconds / 60:.1f}" for side in sides)),
    ]
    if any(side.money is not None for side in sides):
        rows.append(("money", *map(_money, sides)))
    return _columns(rows)


def _money(side: Side) -> str:
    return "unknown" if side.money is None else f"{side.money:.4f} {side.currency}"


def _agreements(agreement: Agreement, noise: Agreement) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("", "compared", "equal", "by meaning", "repeated", "by meaning"),
        ("the same answer", *_same(_all(agreement), _all(noise))),
    ]
    for kind, same in agreement.same_by_kind.items():
        rows.append((f"  {kind}", *_same(same, noise.same_by_kind.get(kind, Count()))))
    for name, count in agreement.fields.items():
        twice = noise.fields.get(name, Count())
        rows.append((_LABELS.get(name, name), f"{count.of:,}", *_shares(count), *_shares(twice)))
    return rows


def _all(agreement: Agreement) -> Count:
    return Count(len(agreement.same), agreement.agreeing)


def _same(count: Count, twice: Count) -> tuple[str, ...]:
    """Answers are the same by their meaning."""
    of = f"{count.of:,}"
    return of, "", _share(count.exact, count.of), "", _share(twice.exact, twice.of)


def _shares(count: Count) -> tuple[str, str]:
    meant = "" if count.meant is None else _share(count.meant, count.of)
    return _share(count.exact, count.of), meant


def _positions(found: Comparison) -> Iterator[str]:
    if not found.seen:
        return
    yield ""
    yield f"answers of {found.second.name} by their place in the pack"
    rows: list[tuple[str, ...]] = [("positions", "answers", f"as {found.first.name}", "came back")]
    for row in by_bin(found.seen):
        rows.append((f"{row['from']}-{row['to']}", f"{row['of']:,}", *_good(row)))
    yield from _columns(rows)


def _good(row: Mapping[str, Any]) -> tuple[str, str]:
    return _share(row["good"], row["of"]), _share(row["came"], row["of"])


def _share(part: int, of: int) -> str:
    return f"{part / of:.1%}" if of else "-"


def _of(part: int, of: int) -> str:
    return f"{part:,} ({_share(part, of)})" if part else "0"


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows as lines: the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
