"""What a run would do: everything is read, cleaned and folded, and nothing is asked.

Invariant: no call is made and nothing is written outside a temporary folder of this machine, where
the work is done whatever RAY_ADDRESS says (other nodes would count into folders of theirs); what is
counted here is what the run will count, as long as the inputs and the answers stay what they are.
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console

from job.after import closing_warnings
from job.analyse.requests import build_request
from job.analyse.stored import AskSettings, record_key
from job.asking import ask_settings
from job.cluster import cluster
from job.config import Settings
from job.fold.folding import start_shards
from job.intake import Intake
from job.ledger import read_manifests, sum_counts
from job.pack import Fit, Item, Window, make_item
from job.pipeline import read_everything
from job.planning import RunPlan, open_answers, plan_run
from job.printable import printable
from job.progress import start_board
from job.records import Kind, Lane, Record, table_to_records
from job.run_folder import RunFolder
from job.sampling import sample_bound
from job.storage.place import Place
from serve.ask.buckets import PACE, capacity_for
from serve.ask.contract import Request

SHOWN_FILES = 10
"""Files of which a plan shows the first records."""
SHOWN_CHARACTERS = 240
"""Of the text of a record that a plan shows."""
_NUMBERS = ("records", "rejected", "skipped", "rejected_by", "skipped_by")
_FIELDS = ("kind", "level", "rating", "user", "session", "service", "host")
_UNNAMED = ("time", "kind", "text")
WINDOW_RECORDS = 4096
"""Records that wait to be packed at a time, as in a run."""
LANES: tuple[Lane, Lane] = ("fast", "slow")
SECONDS_A_CALL = 5.0
"""A guess for a full pack, where no limit bounds the time and nothing has been measured yet."""


@dataclass(slots=True)
class Preview:
    """The plan of a run in numbers. `minutes`: the least the known limits allow, or a guess from
    the calls in flight where none is known (`bounded` says which)."""

    files: list[dict[str, Any]] = field(default_factory=list)
    ignored: int = 0
    language: str = ""
    model: str = ""
    read: int = 0
    records: int = 0
    rejected: int = 0
    skipped: int = 0
    folded: int = 0
    recalled: int = 0
    to_ask: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    masked: dict[str, int] = field(default_factory=dict)
    skipped_by: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    packs: dict[str, int] = field(default_factory=dict)
    tokens_in: int = 0
    tokens_out: int = 0
    minutes: float = 0.0
    bounded: str = ""
    first_request: Request | None = None

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        values = asdict(self)
        request = values.pop("first_request")
        if request is not None:
            values["first_request"] = {"system": request["system"], "user": request["user"]}
        return values


def preview(settings: Settings, console: Console, quiet: bool) -> Preview:
    """Work the plan out. Raises UsageError or InputError as `run` does."""
    plan = plan_run(settings, keep=False)
    found = Preview(language=plan.language, model=settings.model, ignored=plan.ignored)
    if not quiet:
        console.print(f"reading {len(plan.files)} files", style="dim")
    with tempfile.TemporaryDirectory(prefix="fupan-plan-") as temporary, cluster(own=True):
        folder = RunFolder(Place.of(temporary))
        folder.begin({}, overwrite=False)
        bound = None
        if settings.sample is not None:
            bound = sample_bound(plan.slices, plan.cleaning, settings.sample)
        intake = Intake(plan.slices, plan.cleaning, folder, start_shards(), start_board(), bound)
        _pack(settings, plan, _asked(intake), found)
        _count(plan, folder, found)
    window = settings.since, settings.until
    found.warnings = [*plan.warnings, *closing_warnings(asdict(found), window, {})]
    return found


def _asked(intake: Intake) -> Iterator[list[Record]]:
    dataset = read_everything(intake)
    if dataset is not None:
        for block in dataset.iter_batches(batch_size=None, batch_format="pyarrow"):
            yield table_to_records(block)


def _pack(
    settings: Settings, plan: RunPlan, blocks: Iterator[list[Record]], found: Preview
) -> None:
    """Pack what the store of answers does not hold, as the run would."""
    fit = plan.fit
    if fit is None:
        found.to_ask = sum(len(block) for block in blocks)
        found.bounded = "no calls: the built-in analyst"
        return
    ask = ask_settings(settings, plan)
    window, packer = Window(fit), _Packer(fit, ask, found)
    recalls = not settings.fresh and settings.answers.exists()
    with open_answers(settings) if recalls else nullcontext() as answers:
        for block in blocks:
            keys = [record_key(record, ask) for record in block]
            known = answers.get_many(keys) if answers else {}
            for record, key in zip(block, keys, strict=True):
                if key in known:
                    found.recalled += 1
                else:
                    found.to_ask += 1
                    window.push(make_item(record))
            if len(window) >= WINDOW_RECORDS:
                packer.take_packs(window, full_only=True)
    packer.take_packs(window, full_only=False)
    _bound(settings, found)


@dataclass(slots=True)
class _Packer:
    fit: Fit
    ask: AskSettings
    found: Preview
    packs: Counter[str] = field(default_factory=Counter)

    def take_packs(self, window: Window, full_only: bool) -> None:
        for lane in LANES:
            while True:
                group, full = window.choose(lane)
                if group is None or (full_only and not full):
                    break
                self._add(group[0], lane, window.take(group))
        self.found.packs = dict(self.packs)

    def _add(self, kind: Kind, lane: Lane, items: list[Item]) -> None:
        request = build_request(items, self.ask, self.fit, repair=False)
        self.packs[lane] += 1
        self.found.tokens_in += request.estimate_in
        self.found.tokens_out += self.fit.reserve.needed(kind, lane, len(items))
        if self.found.first_request is None:
            self.found.first_request = request


def _bound(settings: Settings, found: Preview) -> None:
    """The least time the calls can take under the limits that are known."""
    provider = settings.provider
    if provider is None:
        return
    limits = provider.limits
    calls = sum(found.packs.values())
    if limits.rpm is None and limits.tpm is None:
        found.minutes = calls / limits.max_concurrency * SECONDS_A_CALL / 60
        found.bounded = f"a guess: no limit is known, {limits.max_concurrency} calls in flight"
        return
    by_requests = by_tokens = 0.0
    if limits.rpm is not None:
        rate = limits.rpm * limits.share
        by_requests = least_minutes(calls, rate, (limits.burst or limits.rpm) * limits.share)
    if limits.tpm is not None:
        rate = limits.tpm * limits.share
        by_tokens = least_minutes(found.tokens_in + found.tokens_out, rate, rate)
    found.minutes = max(by_requests, by_tokens) + SECONDS_A_CALL / 60
    which = "requests" if by_requests >= by_tokens else "tokens"
    found.bounded = f"the least that the limit of {which} a minute allows"


def least_minutes(amount: float, per_minute: float, burst: float) -> float:
    """How long the limiter takes to let `amount` through: our share of the provider's bucket, used
    as `serve.ask.buckets` uses it."""
    at_once = capacity_for(per_minute / 60, burst)
    return max(0.0, amount - at_once) / (per_minute * PACE)


def _count(plan: RunPlan, folder: RunFolder, found: Preview) -> None:
    held = read_manifests(folder.manifests)
    for number, (facts, look) in enumerate(zip(plan.facts, plan.looks, strict=True)):
        counts = sum_counts(facts["source"], held.get(facts["source"], []))
        numbers = {name: getattr(counts, name) for name in _NUMBERS}
        shown = look.shown if number < SHOWN_FILES else ()
        found.files.append(facts | numbers | {"first": [_shown(record) for record in shown]})
        found.read += counts.read
        found.records += counts.records
        found.rejected += counts.rejected
        found.skipped += counts.skipped
        found.folded += counts.folded
        found.kinds = dict(Counter(found.kinds) + Counter(counts.kinds))
        found.masked = dict(Counter(found.masked) + Counter(counts.masked))
        found.skipped_by = dict(Counter(found.skipped_by) + Counter(counts.skipped_by))


def _shown(record: Record) -> dict[str, Any]:
    """A record as a plan shows it: what it was understood to be, and how its text begins."""
    known = {name: getattr(record, name) for name in _FIELDS}
    known["time"] = record.time.isoformat() if record.time else None
    text = record.text[:SHOWN_CHARACTERS]
    shown = text + "..." if len(record.text) > SHOWN_CHARACTERS else text
    return {name: value for name, value in known.items() if value is not None} | {"text": shown}


def _reasons(counts: dict[str, int]) -> str:
    named = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()))
    return f" ({named})" if named else ""


def _line_of(shown: dict[str, Any]) -> str:
    """A record in one line."""
    fields = [f"{name}={value}" for name, value in shown.items() if name not in _UNNAMED]
    about = " ".join([shown.get("time", "no time"), shown["kind"], *fields])
    return f"      {about} | {shown['text']}"


def preview_lines(found: Preview, show_request: bool) -> list[str]:
    """The plan in words."""
    lines = ["files"]
    for file in found.files:
        how = ", ".join(filter(None, (file["format"], file["encoding"], file["compression"])))
        lines.append(
            f"  {file['source']}: {how}; {file['records']:,} records, {file['rejected']:,} rejected"
            + _reasons(file.get("rejected_by", {}))
            + (f", {file['skipped']:,} skipped" if file.get("skipped") else "")
            + _reasons(file.get("skipped_by", {}))
        )
        lines += map(_line_of, file.get("first", ()))
    if found.ignored:
        lines.append(f"  {found.ignored:,} entries ignored: hidden, no files, or written by runs")
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.kinds.items()))
    masked = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.masked.items()))
    if len(found.files) > SHOWN_FILES:
        lines.append(f"  (the first records of {SHOWN_FILES} files are shown)")
    lines += [
        f"read      {found.read:,} = {found.records:,} records + {found.rejected:,} rejected"
        f" + {found.skipped:,} skipped" + _reasons(found.skipped_by),
        f"kinds     {kinds or 'none'}",
        f"masked    {masked or 'nothing'}",
        f"to ask    {found.to_ask:,} ({found.folded:,} folded, {found.recalled:,} recalled)",
    ]
    if found.packs:
        packs = ", ".join(f"{count:,} {lane}" for lane, count in sorted(found.packs.items()))
        lines += [
            f"calls     {sum(found.packs.values()):,} ({packs}) to {found.model}",
            f"tokens    about {found.tokens_in:,} in, at most about {found.tokens_out:,} out",
        ]
    minutes = f"{math.ceil(found.minutes * 10) / 10:,} " if found.packs else ""
    lines.append(f"minutes   {minutes}({found.bounded or 'nothing to ask'})")
    lines.append(f"language  {found.language}")
    lines += [f"warning   {warning}" for warning in found.warnings]
    if show_request and found.first_request is not None:
        request = found.first_request
        lines += ["", "--- system", *request.system.split("\n")]
        lines += ["--- user", *request.user.split("\n")]
    return [printable(line) for line in lines]
