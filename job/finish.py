"""Unfinished result files + themes -> what a run leaves beside its report.

Invariant: a finished result file holds exactly the rows of the unfinished one it came from, with
the themes of their issues filled in; a file at a time is in work, some rows of it in memory.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from job.naming.code_names import Aspect
from job.records import ISSUE_TYPE, RESULT_SCHEMA, Result, table_to_results
from job.run_folder import RunFolder
from job.spread import held, spread
from job.storage.place import Place
from job.themes.groups import ThemeText
from job.themes.index import ThemeIndex
from job.themes.issues import OUTCOMES
from job.write import appearing, read_tables, write_table

LISTED = ("failed", "review")
"""Ways to end that have a list of their own."""


def finish_results(
    folder: RunFolder, unfinished: Sequence[Place], index: ThemeIndex
) -> dict[str, Counter[Aspect]]:
    """Write `results/part-*.parquet`, in parallel, in the order of `unfinished`; the issues of each
    theme by severity and basis."""
    parts = [folder.results / f"part-{n:05d}.parquet" for n in range(len(unfinished))]
    for leftover in set(folder.result_files()) - set(parts):
        leftover.unlink()
    tally: dict[str, Counter[Aspect]] = {}
    pairs = zip(unfinished, parts, strict=True)
    for counts in spread(_finish_part, pairs, held(index)):
        for theme, aspects in counts.items():
            tally.setdefault(theme, Counter()).update(aspects)
    return tally


def _finish_part(pair: tuple[Place, Place], index: ThemeIndex) -> dict[str, Counter[Aspect]]:
    """One file: where it is and where it is to be."""
    source, part = pair
    themes = _Themes(index)
    write_table(part, (themes.fill_in(table) for table in read_tables([source])), RESULT_SCHEMA)
    return themes.tally


@dataclass(slots=True)
class _Themes:
    """Fills the themes of issues in, and counts them."""

    index: ThemeIndex
    tally: dict[str, Counter[Aspect]] = field(default_factory=dict)

    def fill_in(self, table: pa.Table) -> pa.Table:
        """`table` with the theme of each issue that has one."""
        lists = pa.concat_arrays(table["issues"].chunks or [pa.array([], _ISSUES)])
        issues = lists.flatten()
        if len(issues) == 0:
            return table
        outcomes = table["outcome"].take(pc.list_parent_indices(lists)).to_pylist()
        columns = {name: pc.struct_field(issues, name) for name in ISSUE_TYPE.names}
        events, causes = columns["event"].to_pylist(), columns["cause"].to_pylist()
        texts = [
            ThemeText(event, cause, OUTCOMES[outcome]) if outcome in OUTCOMES else None
            for outcome, event, cause in zip(outcomes, events, causes, strict=True)
        ]
        distinct = list(dict.fromkeys(text for text in texts if text is not None))
        known = dict(zip(distinct, self.index.of_texts(distinct), strict=True))
        themes = [None if text is None else known[text] for text in texts]
        severities, bases = columns["severity"].to_pylist(), columns["basis"].to_pylist()
        for theme, cause, severity, basis in zip(themes, causes, severities, bases, strict=True):
            if theme is not None:
                aspect = (severity, basis if cause else None)
                self.tally.setdefault(theme, Counter())[aspect] += 1
        columns["theme"] = pa.array(themes, pa.string())
        filled = pa.StructArray.from_arrays(list(columns.values()), fields=list(ISSUE_TYPE))
        offsets = pc.subtract(lists.offsets, lists.offsets[0])
        column = pa.ListArray.from_arrays(offsets, filled)
        at = table.schema.get_field_index("issues")
        return table.set_column(at, table.schema.field(at), column)


_ISSUES = RESULT_SCHEMA.field("issues").type


def write_outcomes(folder: RunFolder) -> None:
    """Write `failed.jsonl`, `review.jsonl` and `rejected.jsonl`; empty ones too, so that a reader
    can tell none from not written."""
    lists = folder.work / "lists"
    made = list(spread(_list_part, folder.result_files(), lists))
    for number, via in enumerate(LISTED):
        _join(folder.root / f"{via}.jsonl", (paths[number] for paths in made))
    _join(folder.root / "rejected.jsonl", folder.rejected.glob("*.jsonl"))
    lists.rmtree()


def _join(place: Place, parts: Iterable[Place | None]) -> None:
    with appearing(place) as file:
        for part in parts:
            if part is not None:
                with part.open() as lines:
                    shutil.copyfileobj(lines, file, _COPIED)


_COPIED = 2**20
"""Bytes copied at once."""


def _list_part(part: Place, lists: Place) -> list[Place | None]:
    """The lists of one result file, None where it has nothing for one."""
    held: set[str] = set()
    for table in read_tables([part], columns=["via"]):
        held.update(pc.unique(table["via"]).to_pylist())
    made: list[Place | None] = []
    for via, row in zip(LISTED, (_failed, _reviewed), strict=True):
        place = lists / via / f"{part.name}.jsonl" if via in held else None
        if place is not None:
            with appearing(place) as file:
                file.writelines(_lines(part, via, row))
        made.append(place)
    return made


def _lines(part: Place, via: str, row: Any) -> Iterator[bytes]:
    for table in read_tables([part]):
        for result in table_to_results(table.filter(pc.equal(table["via"], via))):
            yield orjson.dumps(row(result), option=orjson.OPT_APPEND_NEWLINE)


def _failed(result: Result) -> Mapping[str, Any]:
    return _where(result) | {
        "reason": result.reason,
        "provider_message": result.provider_message,
        "attempts": result.attempts,
    }


def _reviewed(result: Result) -> Mapping[str, Any]:
    return _where(result) | {
        "reason": result.reason,
        "outcome": result.outcome,
        "issues": [asdict(issue) for issue in result.issues],
    }


def _where(result: Result) -> dict[str, Any]:
    record = result.record
    return {name: getattr(record, name) for name in ("id", "source", "position", "text")}
