"""All records in the order of their importance, on a real Ray cluster."""

from __future__ import annotations

import pytest
import ray

from job.cluster import cluster
from job.pack.held import BLOCK_RECORDS
from job.pipeline import in_order_of_importance
from job.ration.importance import RANK
from job.records import RECORD_SCHEMA, records_to_table
from tests.job.make import record

pytestmark = pytest.mark.ray

BLOCKS, ROWS = 4, 700


def test_blocks_come_in_order_none_greater_than_one_call() -> None:
    some = [
        [
            record(f"request {block} {n}", level="error" if n % 7 == 0 else "info")
            for n in range(ROWS)
        ]
        for block in range(BLOCKS)
    ]
    with cluster(own=True):
        records = ray.data.from_arrow([records_to_table(each) for each in some])
        ordered = in_order_of_importance(records)
        blocks = list(ordered.iter_batches(batch_size=None, batch_format="pyarrow"))
    ranks = [rank for block in blocks for rank in block[RANK].to_pylist()]
    ids = {row for block in blocks for row in block["id"].to_pylist()}
    assert ranks == sorted(ranks)
    assert len(ids) == len(ranks) == BLOCKS * ROWS
    assert max(block.num_rows for block in blocks) <= BLOCK_RECORDS
    assert set(RECORD_SCHEMA.names) < set(blocks[0].column_names)
