"""Calls, answers and a clock for the tests of the caches."""

from __future__ import annotations

from typing import Any

import orjson

from serve.gateway.contract import CacheKind, CacheWish, Call, Caller, Endpoint, Target, Task

TARGET = Target("main", "model")
CALLER = Caller("key", "tenant")
ALL: frozenset[CacheKind] = frozenset(("exact", "near", "semantic"))


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def a_call(
    text: Any = "How do I rename a file in Linux?",
    *,
    wish: CacheWish | None = None,
    caller: Caller = CALLER,
    targets: tuple[Target, ...] = (TARGET,),
    task: Task | None = None,
    endpoint: Endpoint = "chat/completions",
    estimate: int = 20,
    stream: bool = False,
    idempotency_key: str | None = None,
    timeout: float = 60.0,
    **fields: Any,
) -> Call:
    """A chat at temperature 0 that asks `text` and may use every cache."""
    body = {
        "model": "model",
        "temperature": 0,
        "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": text}],
        "stream": stream,
        **fields,
    }
    return Call(
        endpoint=endpoint,
        body=body,
        caller=caller,
        request_id="req",
        name="model",
        stream=stream,
        estimate=estimate,
        timeout=timeout,
        task=task,
        wish=CacheWish(ALL) if wish is None else wish,
        idempotency_key=idempotency_key,
        targets=targets,
    )


def an_answer(text: str | None = "Use mv.", finish_reason: str = "stop", **message: Any) -> bytes:
    """A whole completion."""
    return orjson.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "model",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text, **message},
                    "finish_reason": finish_reason,
                }
            ],
            "usage": {"prompt_tokens": 20, "completion_tokens": 3, "total_tokens": 23},
        }
    )
