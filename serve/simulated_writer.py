"""What the model writes in answer to an admitted request, rightly or spoilt, and what it cost.

Invariant: what is told of the tokens is true of the bytes that are sent. No I/O, no waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any, cast

import orjson

from serve.ask.contract import Usage
from serve.ask.tokens import count
from serve.simulated_answers import (
    Line,
    break_json,
    cut,
    good_records,
    has_results,
    records_of,
    spoil_records,
)
from serve.simulated_faults import FaultPlan
from serve.simulated_flaws import with_flaws
from serve.simulated_protocol import ChatRequest, message_tokens
from serve.simulated_settings import RECORD_FAULTS, FaultKind, RecordFault, Settings
from serve.simulated_truth import language_asked_for
from serve.simulated_verdict import REFUSAL, Verdict, completed

_CUT_SHARE = (0.3, 0.9)
"""A cut answer keeps a share of its tokens between these."""
_CACHE_LEAST, _CACHE_STEP = 1024, 128
"""OpenAI's documented prompt caching: prefixes of at least the first, in steps of the second."""


class Writer:
    """The models: their words, their pace and what they remember of prompts."""

    def __init__(self, settings: Settings, plan: FaultPlan) -> None:
        self._settings = settings
        self._plan = plan
        self._cached: set[tuple[str, str]] = set()

    def write(
        self,
        request: ChatRequest,
        lines: Sequence[Line],
        answer: dict[str, Any] | str,
        fault: FaultKind | None,
        prompt: int,
        room: int,
    ) -> Verdict:
        """The right `answer` with the model's flaws and the `fault`, within `room` tokens."""
        random = self._plan.random()
        flaws: Counter[str] = Counter()
        if isinstance(answer, dict) and has_results(answer):
            answer, flaws = self._with_flaws(request, lines, answer, prompt)
            if fault in RECORD_FAULTS and has_results(answer):
                answer = spoil_records(answer, cast(RecordFault, fault), random)
        text = answer if isinstance(answer, str) else orjson.dumps(answer).decode()
        if fault == "malformed":
            text = break_json(text, random)
        text, reason = _within_limit(text, fault, room, random)
        verdict = self._finish(request, text, reason, prompt, count(text))
        verdict.good = good_records(text, records_of(lines))
        verdict.flaws = flaws
        return verdict

    def call(self, request: ChatRequest, tool: str, arguments: str, prompt: int) -> Verdict:
        """A call of a tool in place of an answer."""
        return self._finish(request, arguments, "tool_calls", prompt, count(arguments), tool)

    def refuse(self, request: ChatRequest, prompt: int) -> Verdict:
        """A refusal in place of an answer."""
        return self._finish(request, None, "stop", prompt, count(REFUSAL))

    def _with_flaws(
        self, request: ChatRequest, lines: Sequence[Line], answer: dict[str, Any], prompt: int
    ) -> tuple[dict[str, Any], Counter[str]]:
        texts = [line.text or "" for line in records_of(lines)]
        if len(texts) != len(answer["results"]):
            return answer, Counter()
        lang = language_asked_for(request.text_of("system", "developer"))
        chances = self._plan.random("flaws")
        return with_flaws(answer, texts, request.model, prompt, lang, self._settings, chances)

    def _finish(
        self,
        request: ChatRequest,
        text: str | None,
        reason: str,
        prompt: int,
        tokens: int,
        tool: str | None = None,
    ) -> Verdict:
        rate = self._settings.output_rate
        return completed(
            self._plan.number,
            request,
            text,
            reason,
            Usage(prompt, tokens, self._cached_tokens(request)),
            tokens / rate if rate else 0.0,
            tool,
        )

    def _cached_tokens(self, request: ChatRequest) -> int:
        """Tokens of the first message that this model saw before, as prompt caching counts them."""
        first = request.messages[0]
        tokens = message_tokens(first) if first.role in ("system", "developer") else 0
        if tokens < _CACHE_LEAST:
            return 0
        prefix = (request.model, first.content or "")
        known = prefix in self._cached
        self._cached.add(prefix)
        return tokens - tokens % _CACHE_STEP if known else 0


def _within_limit(text: str, fault: FaultKind | None, room: int, random: Random) -> tuple[str, str]:
    """The text, cut where it is too long or the fault cuts it, and why it ended."""
    tokens = count(text)
    limit = int(tokens * random.uniform(*_CUT_SHARE)) if fault == "cut" else tokens
    if min(limit, room) < tokens:
        return cut(text, min(limit, room)), "length"
    return text, "stop"
