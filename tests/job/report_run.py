"""Small run folders for the tests of reduce and report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from job.records import VIAS, Issue, Record, Rejected, Result, results_to_table

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def record(number: int, text: str = "the payment page shows an error", **fields: Any) -> Record:
    """A record whose time is `number` minutes after noon."""
    values: dict[str, Any] = {
        "id": f"r{number:016x}",
        "source": "logs/app.jsonl",
        "position": number * 100,
        "time": NOON + timedelta(minutes=number),
        "kind": "operation",
        "lang": "en",
        "text": text,
    }
    return Record(**(values | fields))


def issue(**fields: Any) -> Issue:
    values: dict[str, Any] = {
        "event": "the payment page fails",
        "cause": "the gateway times out",
        "basis": "stated",
        "suggestion": "raise the timeout",
        "severity": "medium",
        "quote": None,
        "theme": "t-pay",
    }
    return Issue(**(values | fields))


def problem(number: int, *issues: Issue, **fields: Any) -> Result:
    return Result(record(number, **fields), "answered", "problem", issues or (issue(),), model="m")


def theme(id: str = "t-pay", **fields: Any) -> dict[str, Any]:
    """A row of themes.parquet."""
    return {
        "id": id,
        "title": "Payments time out",
        "summary": "The payment page fails while the gateway is slow.",
        "cause": "The gateway times out.",
        "basis": "stated",
        "action": "Raise the timeout to the gateway.",
        "severity": "high",
        "severity_reason": "Users cannot pay.",
        "named_by": "model",
        "issues": 1,
        "centroid": [0.0, 1.0],
    } | fields


def write_run(
    out: Path,
    results: Sequence[Result],
    themes: Sequence[dict[str, Any]] = (),
    rejected: Sequence[Rejected] = (),
    skipped: int = 0,
    **run: Any,
) -> Path:
    """The folder of a run with these results, split over two files."""
    (out / "results").mkdir(parents=True)
    half = len(results) // 2
    for name, part in (("a", results[:half]), ("b", results[half:])):
        pq.write_table(results_to_table(part), out / "results" / f"{name}.parquet")
    _themes(out / "themes.parquet", themes)
    _json(out / "ledger.json", ledger(results, rejected, skipped))
    stations = {"read": 0.8, "clean": 0.9, "analyse": 9.5, "themes": 1.2, "report": 0.4}
    _json(
        out / "timing.json",
        {"wall_s": 14.2, "stations": stations, "calls_s": 8.1, "overhead_s": 6.1},
    )
    _json(out / "run.json", RUN | run)
    lines = [orjson.dumps({name: getattr(row, name) for name in row.__slots__}) for row in rejected]
    (out / "rejected.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    return out


RUN: dict[str, Any] = {
    "version": "0.1.0",
    "started": "2026-03-03T01:00:00Z",
    "finished": "2026-03-03T01:00:14Z",
    "command": ["run", "logs", "--out", "out"],
    "provider": "openai",
    "model": "chat-large",
    "language": "en",
    "timezone": "Asia/Shanghai",
    "date": "2026-03-02",
    "mode": "packed",
    "instructions": "5f0c2d9e",
    "inputs": [{"path": "logs/app.jsonl", "bytes": 12_345, "sha256": "ab12"}],
    "settings": {"context": 8192},
    "stopped": None,
}


def ledger(results: Sequence[Result], rejected: Sequence[Rejected], skipped: int) -> dict[str, Any]:
    """The ledger that belongs to these rows."""
    names = sorted({r.record.source for r in results} | {r.source for r in rejected})
    sources = [_source(name, results, rejected) for name in names]
    vias = Counter(r.via for r in results)
    return {
        "read": len(results) + len(rejected) + skipped,
        "records": len(results),
        "rejected": len(rejected),
        "skipped": skipped,
        **{via: vias[via] for via in VIAS},
        "calls": {
            "requests": 12,
            "retries": 1,
            "rate_limited": 0,
            "tokens_in": 45_678,
            "tokens_out": 9_876,
            "usd": 1.2346,
            "cost": 1.2346,
            "currency": "USD",
            "unconfirmed": 0.0123,
        },
        "spend": {
            "cost_before": 0.0,
            "by_kind": {"operation": 1.0, "conversation": 0.2, "naming": 0.0346},
            "by_source": {name: 1.2 / len(names) for name in names} | {"(naming)": 0.0346},
            "by_label": {"(none)": 1.2, "(naming)": 0.0346},
            "max_spend": None,
            "capped": False,
            "prices": "configuration",
            "prices_as_of": None,
        },
        "masked": {"email": 3, "phone": 2},
        "sources": sources,
    }


def _source(name: str, results: Sequence[Result], rejected: Sequence[Rejected]) -> dict[str, Any]:
    records = sum(r.record.source == name for r in results)
    reasons = Counter(r.reason for r in rejected if r.source == name)
    return {
        "source": name,
        "format": "jsonl",
        "encoding": "utf-8",
        "compression": None,
        "bytes": 12_345,
        "read": records + reasons.total(),
        "records": records,
        "rejected": reasons.total(),
        "skipped": 0,
        "rejected_by": dict(reasons),
        "flags": {},
        "kinds": {},
        "masked": {},
        "first": None,
        "last": None,
    }


def _themes(path: Path, themes: Sequence[dict[str, Any]]) -> None:
    strings = [name for name in theme() if name not in ("issues", "centroid")]
    schema = pa.schema(
        [
            *((name, pa.string()) for name in strings),
            ("issues", pa.int64()),
            ("centroid", pa.list_(pa.float32())),
        ]
    )
    pq.write_table(pa.Table.from_pylist(list(themes), schema=schema), path)


def _json(path: Path, value: Any) -> None:
    path.write_bytes(orjson.dumps(value))
