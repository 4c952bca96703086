"""The distinct issues of a run: counted exactly, and the same sample however they lie in files."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from job.records import RESULT_SCHEMA, Issue, Outcome, Result, results_to_table
from job.storage.place import Place
from job.themes import issues
from job.themes.groups import ThemeText, digest
from job.themes.issues import VARIANTS, Sample, sample_issues
from job.write import write_table
from tests.job.make import record

WORDS = ("refund", "disk", "login", "parcel", "coupon", "mail", "search", "queue")
Row = tuple[str, Outcome, str]


def write(folder: Path, rows: list[Row], files: int) -> list[Place]:
    paths = []
    for number in range(files):
        made = [
            Result(
                record(f"{i} {word}"),
                "answered",
                outcome,
                (Issue(f"{word} late", None, "stated", None, severity, None),),  # type: ignore[arg-type]
            )
            for i, (word, outcome, severity) in enumerate(rows[number::files])
        ]
        path = Place.of(folder / f"{files}-{number}.parquet")
        write_table(path, [results_to_table(made)], RESULT_SCHEMA)
        paths.append(path)
    return paths


def same(one: Sample, other: Sample) -> bool:
    return (one.details, one.counts, one.complete) == (other.details, other.counts, other.complete)


@settings(max_examples=20)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(WORDS),
            st.sampled_from(["problem", "positive", "normal"]),
            st.sampled_from(["low", "high"]),
        ),
        max_size=60,
    ),
    st.integers(2, 5),
    st.integers(1, 9),
)
def test_files_and_parts_change_nothing(rows: list[Row], files: int, limit: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        whole = sample_issues(write(Path(folder), rows, 1), 2 * limit)
        patch.setattr(issues, "PART_ROWS", 7)
        patch.setattr(issues, "FILE_ROWS", 5)
        cut = sample_issues(write(Path(folder), rows, files), 2 * limit)
    assert same(whole, cut)
    truth = Counter(
        (word, outcome == "positive") for word, outcome, _ in rows if outcome != "normal"
    )
    counted = {
        digest(ThemeText(f"{word} late", None, positive)): count
        for (word, positive), count in truth.items()
    }
    assert whole.counts.items() <= counted.items()
    for positive in (False, True):
        most = sorted((n for (_, p), n in truth.items() if p == positive), reverse=True)
        chosen = [
            details.total() for text, details in whole.details.items() if text.positive == positive
        ]
        assert len(chosen) == min(len(most), 2 * limit)
        # Half of the sample are the most frequent.
        assert sorted(chosen, reverse=True)[:limit] == most[:limit]
    assert whole.complete == (whole.counts == counted)


def test_of_one_text_the_most_frequent_variants_are_kept_and_all_are_counted(
    tmp_path: Path,
) -> None:
    made = [
        Result(
            record(f"{number} {turn}"),
            "answered",
            "problem",
            (Issue(f"refund of order {number} late", None, "stated", None, "low", None),),
        )
        for number in range(VARIANTS + 5)
        for turn in range(1 + (number == VARIANTS + 4))
    ]
    write_table(Place.of(tmp_path / "a.parquet"), [results_to_table(made)], RESULT_SCHEMA)
    sample = sample_issues([Place.of(tmp_path / "a.parquet")])
    assert list(sample.counts.values()) == [VARIANTS + 6]
    assert len(sample.details) == VARIANTS
    assert max(details.total() for details in sample.details.values()) == 2


def test_no_files() -> None:
    assert same(sample_issues([]), Sample())
