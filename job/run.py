"""One run from settings to report: plan, stream, group, account, report.

Invariant: a run that began leaves a folder that says what it is (`run.json`), a balanced ledger
and a report, also when it was stopped; or an error, and a folder that the same command goes on in.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
import ray

from job import extractive
from job.analyse import AnalyseSettings
from job.cleaning import cleaning_by_source
from job.cluster import cluster
from job.config import Settings
from job.errors import StoppedEarly, TooManyFailed, UsageError
from job.finish import finish_results, write_outcomes
from job.grouping import group_issues
from job.instructions import instructions_hash
from job.intake import Intake
from job.join import join_members
from job.ledger import count_vias, make_ledger, sum_counts
from job.pipeline import ask_everything, fold_shards
from job.planning import RunPlan, plan_run
from job.progress import Board, View
from job.records import SliceCounts
from job.report import write_report
from job.run_folder import RunFolder
from job.sampling import sample_bound
from job.show import Watcher
from job.stored import AskSettings
from job.timing import Stations
from job.write import write_json
from serve.ask.answers import Answers
from serve.ask.answers_actor import AnswersActor
from serve.ask.ask import CallCounts
from serve.ask.errors import Misconfigured
from serve.ask.settings import Prices, api_key
