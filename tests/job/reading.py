"""Reading as the tests do it: bytes in a file -> its plan and rows."""

from __future__ import annotations

from datetime import UTC, date
from pathlib import Path

from job.read import FilePlan, Plan, plan_inputs, read_slice
from job.read.plan import SLICE_BYTES
from job.records import Raw, Rejected

REFERENCE = date(2024, 3, 6)


def plan(*inputs: Path | str, slice_bytes: int = SLICE_BYTES) -> Plan:
    return plan_inputs(
        [str(given) for given in inputs], reference=REFERENCE, zone=UTC, slice_bytes=slice_bytes
    )


def planned(path: Path, data: bytes, slice_bytes: int = SLICE_BYTES) -> FilePlan:
    path.write_bytes(data)
    return plan(path, slice_bytes=slice_bytes).files[0]


def rows_of(file: FilePlan) -> list[Raw | Rejected]:
    return [row for part in file.slices for row in read_slice(part)]


def rows(path: Path, data: bytes) -> list[Raw | Rejected]:
    return rows_of(planned(path, data))


def records(path: Path, data: bytes) -> list[Raw]:
    """The rows, none of which may be a rejection."""
    found = rows(path, data)
    assert [row for row in found if isinstance(row, Rejected)] == []
    return [row for row in found if isinstance(row, Raw)]


def values(path: Path, data: bytes) -> list[object]:
    return [record.value for record in records(path, data)]
