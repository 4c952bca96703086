"""What of an attempt decides its bill: what is sent, and how it ended. Pure.

Invariant: everything that is sent is counted; an end that leaves any doubt counts as billed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from serve.ask import tokens
from serve.ask.contract import Reply, Request
from serve.ask.errors import AskError
from serve.ask.settings import OF_THE_REQUEST
from serve.ask.spend import Call, Ended


def call_of(body: Mapping[str, Any], request: Request, context: int) -> Call:
    """What decides the cost of sending `body`, a body of `request`, to a model that takes `context`
    tokens. Everything that is sent is counted. Where no longest answer is asked for, it may fill
    the context: the provider may count less input than we do."""
    texts = [str(message["content"]) for message in body["messages"]]
    texts += [
        orjson.dumps(value).decode()
        for name, value in body.items()
        if name not in OF_THE_REQUEST and isinstance(value, Mapping | list | str)
    ]
    estimate = sum(map(tokens.count, texts))
    asked = [body.get(name) for name in ("max_tokens", "max_completion_tokens")]
    longest = max(filter(None, asked), default=max(context, request.max_output))
    return Call(
        model=body["model"],
        estimate_in=estimate,
        max_output=int(longest) * int(body.get("n") or 1),
        seconds=request.timeout,
        billed_to=request.billed_to,
        optional=request.optional,
    )


def is_counted(reply: Reply) -> bool:
    """Whether the provider told what the reply cost."""
    usage = reply.usage
    return usage.tokens_in > 0 and (usage.tokens_out > 0 or not reply.text)


def ended_by(error: AskError) -> Ended:
    """Whether an attempt that failed may have been billed: a request that was refused, or never
    arrived, was not."""
    if error.usage is not None and error.usage.tokens_in > 0:
        return "answered"
    refused = error.status is not None and 300 <= error.status < 500
    return "free" if refused or not error.sent else "unconfirmed"
