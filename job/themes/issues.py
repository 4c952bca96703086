"""The distinct issues of a run, counted by tasks, and the sample of them that is grouped.

Counting goes by parts: each task counts the issues of some files and spreads them by digest over
the parts, each part is then summed by one task. The driver sees counts of candidates, and the words
of the sample alone.

Invariant: counts are exact, and the sample depends on the distinct issues and their counts alone,
not on how they lie in files; the memory of any process is bounded whatever their number.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from job.records import ISSUE_TYPE
from job.spread import begin, done, spread
from job.storage.place import Place
from job.themes.groups import DIGEST_BYTES, ThemeText, digest
from job.write import count_rows, read_tables

SAMPLE = 4_000
"""Distinct texts that are grouped by meaning, of problems and of praise each: two embeddings a
problem, at 60 a second, are two minutes, and all are compared each with each. Half are the most
frequent; the others are drawn evenly, and hold a text of a theme that has a five-hundredth of all
with a probability of 0.98."""
VARIANTS = 20
"""Of one text, that differ in what varies or in what is suggested: what a theme is named by."""
PART_ROWS = 50_000
"""Rows of results for each part: some 20 MB if each has an issue of its own."""
FILE_ROWS = 32_768
"""Rows of results in one counting task, at least."""

OUTCOMES = {"problem": False, "positive": True}
"""Outcomes whose issues have themes, and whether those are praise."""

Detail = tuple[str, str | None, str]
"""Basis, suggestion and severity of an issue."""

_ASIDE = ("basis", "suggestion", "severity")
_SAID = ("positive", "event", "cause", *_ASIDE)
_COUNTED = pa.schema(
    [
        pa.field("digest", pa.binary(DIGEST_BYTES)),
        pa.field("positive", pa.bool_()),
        *(pa.field(name, pa.string()) for name in _SAID[1:]),
        pa.field("count", pa.int64()),
    ]
)


@dataclass(slots=True)
class Sample:
    """Issues to be grouped: how the issues of each text differ in the rest, and how often each of
    the texts that are alike but for what varies (by digest) occurred with all its variants.
    `complete`: it holds every distinct issue of the run."""

    details: dict[ThemeText, Counter[Detail]] = field(default_factory=dict)
    counts: dict[bytes, int] = field(default_factory=dict)
    complete: bool = True


def sample_issues(results: Sequence[Place], limit: int = SAMPLE) -> Sample:
    """The most frequent and an even sample of the distinct issues of result files, `limit` of
    problems and of praise each; all of them where there are no more."""
    summed = _begin_counting(results, limit)
    sample = Sample()
    chosen: dict[bytes, int] = {}
    for positive in (False, True):
        best = _Best.none()
        for candidates, _ in summed:
            best = best.with_more(done(candidates)[positive], limit)
        chosen |= best.chosen(limit)
        sample.complete &= best.total <= limit
    sample.counts = chosen
    wanted = pa.array(sorted(chosen), pa.binary(DIGEST_BYTES))
    for rows in spread(_details, [table for _, table in summed], wanted):
        for row in rows.to_pylist():
            text = ThemeText(row["event"], row["cause"], row["positive"])
            detail = (row["basis"], row["suggestion"], row["severity"])
            sample.details.setdefault(text, Counter())[detail] += row["count"]
    return sample


def _begin_counting(results: Sequence[Place], limit: int) -> list[tuple[Any, Any]]:
    """For each part of the issues what `_sum_up` makes of it. What the files held is let go as soon
    as it is summed."""
    parts = max(1, math.ceil(count_rows(results) / PART_ROWS))
    counted = [begin(_count, files, parts, returns=parts) for files in _some(results)]
    tables = [[each] if parts == 1 else each for each in counted]
    return [begin(_sum_up, limit, *part, returns=2) for part in zip(*tables, strict=True)]


def issues_of(table: pa.Table) -> pa.Table:
    """The issues of the rows of a result table that have themes, one a row, with `outcome`."""
    themed = table.filter(pc.is_in(table["outcome"], pa.array(list(OUTCOMES))))
    lists = themed["issues"].combine_chunks()
    if isinstance(lists, pa.ChunkedArray):
        lists = pa.array([], pa.list_(ISSUE_TYPE))
    flat = pc.list_flatten(lists)
    outcomes = themed["outcome"].take(pc.list_parent_indices(lists))
    columns = {name: pc.struct_field(flat, name) for name in ISSUE_TYPE.names}
    return pa.table({"outcome": outcomes, **columns})


def _some(results: Sequence[Place]) -> Iterator[list[Place]]:
    """The files in handfuls, so that a task is worth its start."""
    handful: list[Place] = []
    rows = 0
    for path in results:
        handful.append(path)
        rows += count_rows([path])
        if rows >= FILE_ROWS:
            yield handful
            handful, rows = [], 0
    if handful:
        yield handful


def _count(files: Sequence[Place], parts: int) -> Any:
    """The distinct issues of files with their counts, a table for each part."""
    said = _COUNTED.empty_table().drop_columns("digest")
    for table in read_tables(files, columns=["outcome", "issues"]):
        some = issues_of(table)
        some = some.append_column("positive", pc.equal(some["outcome"], "positive"))
        said = _summed(pa.concat_tables([said, _summed(some, _SAID).cast(said.schema)]), _SAID)
    issues = _with_digest(said)
    first = np.array([d[0] * 256 + d[1] for d in issues["digest"].to_pylist()], dtype=np.int64)
    tables = tuple(issues.filter(pa.array(first % parts == part)) for part in range(parts))
    return tables[0] if parts == 1 else tables


def _summed(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The rows of `table` that are equal in `keys` as one, with their `count`."""
    if "count" not in table.column_names:
        table = table.append_column("count", pa.array(np.ones(len(table), dtype=np.int64)))
    grouped = table.group_by(list(keys), use_threads=False).aggregate([("count", "sum")])
    return grouped.rename_columns({"count_sum": "count"})


def _with_digest(said: pa.Table) -> pa.Table:
    known: dict[ThemeText, bytes] = {}
    digests = []
    for event, cause, positive in zip(
        *(said[name].to_pylist() for name in ("event", "cause", "positive")), strict=True
    ):
        text = ThemeText(event, cause, positive)
        if text not in known:
            known[text] = digest(text)
        digests.append(known[text])
    column = pa.array(digests, pa.binary(DIGEST_BYTES))
    return said.append_column("digest", column).select(_COUNTED.names).cast(_COUNTED)


@dataclass(frozen=True, slots=True)
class _Best:
    """Of digests those that may be in the sample, with their counts; `total`: of how many."""

    digests: NDArray[np.void]
    counts: NDArray[np.int64]
    total: int

    @classmethod
    def none(cls) -> _Best:
        return cls(np.empty(0, dtype=f"V{DIGEST_BYTES}"), np.empty(0, dtype=np.int64), 0)

    def with_more(self, other: _Best, limit: int) -> _Best:
        """The best of both, which share no digest."""
        both = _Best(
            np.concatenate([self.digests, other.digests]),
            np.concatenate([self.counts, other.counts]),
            self.total + other.total,
        )
        return both.trimmed(limit)

    def trimmed(self, limit: int) -> _Best:
        """Without what cannot be in the sample: neither frequent nor drawn, were all the frequent
        among the drawn."""
        by_count, by_digest = self._orders()
        kept = np.union1d(by_count[: limit // 2], by_digest[:limit])
        return _Best(self.digests[kept], self.counts[kept], self.total)

    def chosen(self, limit: int) -> dict[bytes, int]:
        """The sample: half by how often they occurred, half by the smallest digests left."""
        by_count, by_digest = self._orders()
        frequent = by_count[: limit // 2]
        drawn = by_digest[~np.isin(by_digest, frequent)][: limit - len(frequent)]
        rows = np.concatenate([frequent, drawn])
        return dict(
            zip((d.tobytes() for d in self.digests[rows]), self.counts[rows].tolist(), strict=True)
        )

    def _orders(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows by count, then digest; and by digest alone."""
        by_digest = np.argsort(self.digests.view(f"S{DIGEST_BYTES}"), kind="stable")
        return by_digest[np.argsort(-self.counts[by_digest], kind="stable")], by_digest


def _sum_up(limit: int, *tables: pa.Table) -> tuple[tuple[_Best, _Best], pa.Table]:
    """One part of all issues: its candidates for the sample, of problems and of praise, and what
    was summed."""
    table = _summed(pa.concat_tables(tables), ("digest", *_SAID))
    texts = _summed(table.select(["digest", "positive", "count"]), ("digest", "positive"))
    best = []
    for positive in (False, True):
        own = texts.filter(pc.equal(texts["positive"], positive))
        digests = np.frombuffer(b"".join(own["digest"].to_pylist()), dtype=f"V{DIGEST_BYTES}")
        counts = own["count"].to_numpy().astype(np.int64)
        best.append(_Best(digests, counts, len(own)).trimmed(limit))
    return (best[0], best[1]), table


def _details(table: pa.Table, wanted: pa.Array) -> pa.Table:
    """The most frequent variants of each of the texts that are wanted."""
    chosen = table.filter(pc.is_in(table["digest"], wanted))
    rows = sorted(
        chosen.append_column("row", pa.array(range(len(chosen)))).to_pylist(),
        key=lambda row: (-row["count"], row["event"], row["cause"] or "", repr(row)),
    )
    kept: Counter[bytes] = Counter()
    taken = []
    for row in rows:
        kept[row["digest"]] += 1
        if kept[row["digest"]] <= VARIANTS:
            taken.append(row["row"])
    return chosen.take(pa.array(taken, pa.int64()))
