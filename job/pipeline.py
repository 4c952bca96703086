"""The whole flow on one screen; every Ray Data resource decision is here.

    read -> clean -> fold -> analyse -> results -> embed -> themes -> reduce -> report

Invariant: rows stream from the readers through the analyst into result files without passing the
driver; only files that a finished task reported are counted; the ledger is recounted from files
and balances, or the run fails.
"""

from __future__ import annotations

import ray
from ray.data import ActorPoolStrategy, TaskPoolStrategy

from job.analyse.analyst import Analyse, AnalyseSettings
from job.asked_files import analyse_and_write, write_results
from job.intake import Intake
from job.pack.held import BLOCK_RECORDS, blocks_at_once
from job.ration.importance import RANK, with_ranks
from job.spread import RETRIES
from job.storage.place import Place

RESULT_ROWS = 4096
"""Of one unfinished result file, half a second of work for the built-in analyst."""
SORT_ROWS = 32_768
SORT_BYTES = 32 << 20
"""Of a block that is sorted. Sorting cuts each into as many parts as there are blocks, and what is
smaller than 100 kB Ray keeps in the memory of the driver: not before 10 GB of records."""
WRITERS = 2
"""Tasks that write at once. They take no CPU, or they would wait for the reading; without a limit
Ray starts a process for each."""


def read_everything(intake: Intake) -> ray.data.Dataset | None:
    """The records to ask, one task per slice; None if there is no slice."""
    count = len(intake.slices)
    if count == 0:
        return None
    return ray.data.range(count, override_num_blocks=count).map_batches(
        intake,
        batch_size=1,
        batch_format="numpy",
        num_cpus=1,
        ray_remote_args_fn=_few_retries,
    )


def in_order_of_importance(records: ray.data.Dataset) -> ray.data.Dataset:
    """The records, the most important first. All are read before the first is handed on; what
    memory does not hold of them Ray keeps on the disk. In blocks of one call each: calls that go
    through great blocks side by side would ask about the end of one after the start of the next."""
    context = records.context
    context.execution_options.preserve_order = True
    context.target_max_block_size = SORT_BYTES
    ranked = records.map_batches(
        with_ranks,
        batch_size=SORT_ROWS,
        batch_format="pyarrow",
        num_cpus=1,
        ray_remote_args_fn=_few_retries,
    )
    return ranked.sort(RANK).repartition(target_num_rows_per_block=BLOCK_RECORDS)


def ask_everything(intake: Intake, analyst: AnalyseSettings | str) -> list[Place]:
    """Stream every slice through the analyst into result files. `analyst`: settings of the asking
    actor, or the language of the built-in one."""
    records = read_everything(intake)
    if records is None:
        return []
    writing = {"into": intake.folder.asked}
    if isinstance(analyst, AnalyseSettings):
        if analyst.rationed:
            records = in_order_of_importance(records)
        blocks = blocks_at_once(analyst.provider, analyst.pack_tokens)
        results = records.map_batches(
            Analyse,
            fn_constructor_args=(analyst,),
            batch_size=BLOCK_RECORDS,
            batch_format="pyarrow",
            num_cpus=0,
            compute=ActorPoolStrategy(
                size=1,
                max_tasks_in_flight_per_actor=2 * blocks,
                max_concurrent_calls_per_actor=blocks,
                enable_true_multi_threading=True,
            ),
            ray_remote_args_fn=_few_restarts,
        )
        written = results.map_batches(
            write_results,
            fn_kwargs=writing,
            batch_size=RESULT_ROWS,
            batch_format="pyarrow",
            num_cpus=0,
            compute=TaskPoolStrategy(size=WRITERS),
            ray_remote_args_fn=_few_retries,
        )
    else:
        written = records.map_batches(
            analyse_and_write,
            fn_kwargs={"language": analyst, "board": intake.board, **writing},
            batch_size=RESULT_ROWS,
            batch_format="pyarrow",
            num_cpus=1,
            ray_remote_args_fn=_few_retries,
        )
    files = [intake.folder.asked / row["file"] for row in written.take_all()]
    for leftover in set(intake.folder.asked.iterdir()) - set(files):
        leftover.unlink()
    return files


def _few_retries() -> dict[str, int]:
    return {"max_retries": RETRIES}


def _few_restarts() -> dict[str, int]:
    return {"max_task_retries": RETRIES}
