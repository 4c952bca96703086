"""What is sent for a request, and the bodies of completions, whole and streamed.

Invariant: a Verdict holds the very bytes; whoever delivers it adds nothing.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from serve.ask.contract import Usage
from serve.simulated_protocol import ChatRequest

Manner = Literal["whole", "stream", "reset", "close", "partial", "hang"]
"""How an answer goes out: whole or as a stream; or a TCP reset, a plain close, a reset in the
middle of the body, nothing until the client gives up."""

REFUSAL = "I cannot help with this request."
_PIECE = 8
"""Tokens, about, in a piece of a streamed answer."""


@dataclass(slots=True)
class Verdict:
    """What is sent, when (`delay`, seconds) and how; and what is noted of it.

    `status` None: no answer at all. `events`: the pieces of a stream and `pause` the seconds
    before each. `model`: the one that wrote, empty where none did; `flaws`: rows of the answer by
    what is wrong with them. `reserved`: tokens taken from the limit; `good`: keys of the records
    that the answer is good for, once it is delivered.
    """

    status: int | None
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    manner: Manner = "whole"
    delay: float = 0.0
    events: Sequence[bytes] = ()
    pause: float = 0.0
    model: str = ""
    fault: str | None = None
    flaws: Counter[str] = field(default_factory=Counter)
    finish_reason: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reserved: int = 0
    records: tuple[str, ...] = ()
    good: tuple[str, ...] = ()


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.tokens_in,
        "completion_tokens": usage.tokens_out,
        "total_tokens": usage.tokens_in + usage.tokens_out,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _tool_call(name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": f"call_{name}", "type": "function", "function": function}


def _whole(
    head: Mapping[str, Any], text: str | None, reason: str, usage: Usage, tool: str | None
) -> bytes:
    """A completion in one piece."""
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if text is None:
        message["refusal"] = REFUSAL
    elif tool is not None:
        message |= {"content": None, "tool_calls": [_tool_call(tool, text)]}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    return orjson.dumps(
        {**head, "object": "chat.completion", "choices": [choice], "usage": _usage(usage)}
    )


def _deltas(text: str | None, tool: str | None, size: int) -> list[dict[str, Any]]:
    """What a message adds piece by piece, `size` characters each."""
    if text is None:
        return [{"role": "assistant", "content": ""}, {"refusal": REFUSAL}]
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    if tool is None:
        said = [{"content": piece} for piece in pieces]
        return [{"role": "assistant", "content": ""}, *said]
    head = {"index": 0, **_tool_call(tool, "")}
    called = [{"index": 0, "function": {"arguments": piece}} for piece in pieces]
    first = {"role": "assistant", "content": None, "tool_calls": [head]}
    return [first, *({"tool_calls": [each]} for each in called)]


def _events(
    head: Mapping[str, Any],
    text: str | None,
    reason: str,
    usage: Usage,
    tool: str | None,
    *,
    include_usage: bool,
) -> list[bytes]:
    """A completion as server-sent events, the closing `[DONE]` included."""
    size = max(1, math.ceil(len(text or "") * _PIECE / max(1, usage.tokens_out)))
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        for delta in _deltas(text, tool, size)
    ]
    choices.append({"index": 0, "delta": {}, "logprobs": None, "finish_reason": reason})
    base = {**head, "object": "chat.completion.chunk"} | ({"usage": None} if include_usage else {})
    events = [{**base, "choices": [choice]} for choice in choices]
    if include_usage:
        events.append({**base, "choices": [], "usage": _usage(usage)})
    return [b"data: " + orjson.dumps(e) + b"\n\n" for e in events] + [b"data: [DONE]\n\n"]


def completed(
    number: int,
    request: ChatRequest,
    text: str | None,
    reason: str,
    usage: Usage,
    writing: float,
    tool: str | None = None,
) -> Verdict:
    """The verdict for a completion. `number` makes its id, `text` None: the model refuses,
    `reason`: why it ended, `writing`: seconds to write it, spread over the events of a stream;
    `tool`: the text is what that tool is called with."""
    verdict = Verdict(
        200,
        model=request.model,
        finish_reason=reason,
        prompt_tokens=usage.tokens_in,
        completion_tokens=usage.tokens_out,
        cached_tokens=usage.cached,
    )
    head = {
        "id": f"chatcmpl-{number:08d}",
        "created": int(time.time()),
        "model": request.model,
    }
    if not request.stream:
        verdict.delay = writing
        verdict.body = _whole(head, text, reason, usage, tool)
        return verdict
    options = request.stream_options
    wants_usage = bool(options and options.include_usage)
    verdict.events = _events(head, text, reason, usage, tool, include_usage=wants_usage)
    verdict.body = b"".join(verdict.events)
    verdict.pause = writing / len(verdict.events)
    verdict.manner, verdict.content_type = "stream", "text/event-stream"
    return verdict
