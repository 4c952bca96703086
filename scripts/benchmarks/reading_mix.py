"""Inputs like those of a real day: JSON lines and a plain log of operations, and chats.

Invariant: the same seed and number of records give the same files.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

_CHATS = 12
"""One chat for so many operation records."""
_SERVICES = ("orders", "payments", "search", "auth", "gateway", "库存")
_MESSAGES = (
    ("INFO", "GET /api/v1/orders/{n} 200 {ms}ms"),
    ("INFO", "accepted request {n} from 10.2.{b}.{c}:{p} in {ms} ms"),
    ("INFO", "user u{u} logged in, session={hex}"),
    ("INFO", "cache refreshed, {n} entries, {ms} ms"),
    ("INFO", "订单 {n} 支付成功，耗时 {ms} 毫秒"),
    ("DEBUG", "Running task {b}.0 in stage {c}.0 (TID {n})"),
    ("WARN", "slow query took {ms} ms on replica-{c}"),
    ("WARN", "库存服务响应超时，第 {c} 次重试，耗时 {ms} 毫秒"),
    ("ERROR", "lease renewal failed for block {n}, {ms} s"),
    ("ERROR", "connection to db-{c}.internal refused: errno 111 after {b} retries"),
    ("ERROR", "POST /api/v1/payments/{n} 502 {ms}ms upstream closed the connection"),
)
_ASKED = (
    "My order {n} has not arrived yet, it was due on Monday.",
    "How do I reset my password? The link in the mail of {b} minutes ago does not work.",
    "为什么我的退款还没有到账？订单 {n}，已经 {c} 天了。",
    "The app crashes when I open the settings page, version 4.{b}.{c}.",
)
_REPLIED = (
    "I am sorry to hear that. Let me check the order for you.",
    "Please try the link again, I have just sent a new one.",
    "您好，退款一般需要三到五个工作日到账，请您耐心等待。",
    "Thanks for telling us. Which device do you use?",
)


def write_mix(folder: Path, records: int, seed: int) -> list[Path]:
    """Write `ops.jsonl`, `app.log` and `chat.jsonl`, about `records` records together."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    operations = records * _CHATS // (2 * _CHATS + 1)
    writers = {
        "ops.jsonl": _json_operations(rng, operations),
        "app.log": _log_lines(rng, operations),
        "chat.jsonl": _chats(rng, records - 2 * operations),
    }
    for name, lines in writers.items():
        with (folder / name).open("wb") as file:
            file.writelines(lines)
    return [folder / name for name in writers]


def _fill(rng: random.Random, sentence: str) -> str:
    return sentence.format(
        n=rng.randrange(10**7),
        u=rng.randrange(5000),
        b=rng.randrange(256),
        c=rng.randrange(10),
        p=rng.randrange(1024, 65536),
        ms=rng.randrange(1, 9000),
        hex=f"{rng.getrandbits(64):016x}",
    )


def _times(rng: random.Random, count: int) -> Iterator[datetime]:
    moment, step = datetime(2026, 3, 14, tzinfo=UTC), timedelta(days=1) / (count + 1)
    for _ in range(count):
        moment += step * rng.uniform(0.2, 1.8)
        yield moment


def _json_operations(rng: random.Random, count: int) -> Iterator[bytes]:
    for moment in _times(rng, count):
        level, sentence = rng.choice(_MESSAGES)
        row = {
            "timestamp": moment.isoformat(timespec="milliseconds"),
            "level": level,
            "service": rng.choice(_SERVICES),
            "host": f"web-{rng.randrange(20)}",
            "trace_id": f"{rng.getrandbits(64):016x}",
            "message": _fill(rng, sentence),
        }
        yield orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


def _log_lines(rng: random.Random, count: int) -> Iterator[bytes]:
    for moment in _times(rng, count):
        level, sentence = rng.choice(_MESSAGES)
        thread = f"pool-{rng.randrange(9)}-thread-{rng.randrange(99)}"
        logger = f"com.example.{rng.choice(_SERVICES[:-1])}.Service"
        time = f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d}"
        yield f"{time} {level} [{thread}] {logger}: {_fill(rng, sentence)}\n".encode()


def _chats(rng: random.Random, count: int) -> Iterator[bytes]:
    for number, moment in enumerate(_times(rng, count)):
        turns = []
        for _ in range(rng.randrange(1, 4)):
            turns.append({"role": "user", "content": _fill(rng, rng.choice(_ASKED))})
            turns.append({"role": "assistant", "content": rng.choice(_REPLIED)})
        row = {
            "id": f"c{number}",
            "created_at": moment.isoformat(timespec="seconds"),
            "user_id": f"u{rng.randrange(5000)}",
            "messages": turns,
        }
        yield orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
