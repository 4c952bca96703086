"""`fupan check`: does the configured provider answer, what does it take, how much does it allow.

Invariant: the key is never shown, only whether its variable is set; what the check cost is said;
exit code 2 where URL, model or key are wrong, 1 where the provider fails, 0 where a run can begin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from job.config_file import load_config
from job.errors import UsageError
from job.flags import Flags
from job.local_model import LocalProvider
from job.printable import printable
from job.provider_choice import choose_provider
from serve.ask.errors import Misconfigured, TimedOut, Unavailable
from serve.ask.probe import Probe, Together, probe
from serve.ask.ratelimit_headers import Quota
from serve.ask.settings import Provider, api_key, key_variable

CLOCK_SECONDS = 5.0
"""By which a clock may differ before it is told: a provider may ask to wait until a time."""
_JSON_MODES = {
    "schema": "json_schema",
    "object": "json_object",
    "words": "no JSON mode, asked for in words",
}


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found. `key`: whether the variable is set; None where no key is needed;
    `others`: the same of the cheaper models, where several share the records."""

    name: str
    provider: Provider
    model: str
    key: bool | None
    found: Probe
    others: tuple[tuple[str, Probe], ...] = ()

    @property
    def exit_code(self) -> int:
        """2: URL, a model or key are wrong; 1: the provider fails or is busy; 0: it answers, with
        each model."""
        return max(_exit_code(found) for found in self._probes)

    @property
    def _probes(self) -> tuple[Probe, ...]:
        return self.found, *(found for _, found in self.others)

    @property
    def _cost(self) -> tuple[int, int]:
        """Requests and tokens."""
        return sum(p.requests for p in self._probes), sum(p.tokens for p in self._probes)

    @property
    def listed_context(self) -> int | None:
        """Tokens the model takes, where the provider's list says it."""
        return next((m.context for m in self.found.models or () if m.name == self.model), None)

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        found = self.found
        requests, tokens = self._cost
        return {
            "exit_code": self.exit_code,
            "provider": self.name,
            "base_url": self.provider.base_url,
            "model": self.model,
            "key": {"variable": key_variable(self.provider), "set": self.key},
            **_answer(found),
            "other_models": [{"model": model, **_answer(other)} for model, other in self.others],
            "limits": {"requests": _quota(found.per_request), "tokens": _quota(found.per_token)},
            "clock_ahead_s": None if found.ahead is None else round(found.ahead, 1),
            "models": None if found.models is None else [m.name for m in found.models],
            "context": {"listed": self.listed_context, "configured": self.provider.context},
            "together": asdict(found.together) if found.together else None,
            "requests": requests,
            "tokens": tokens,
        }

    def lines(self) -> Iterator[str]:
        """What a person reads."""
        for name, said in self._said():
            yield printable(f"{name:<12}{said}")

    def _said(self) -> Iterator[tuple[str, str]]:
        found = self.found
        yield "provider", f"{self.name} at {self.provider.base_url}, model {self.model}"
        held = {True: "is set", False: "is not set", None: "is not set, and none is needed here"}
        yield "key", f"{key_variable(self.provider)} {held[self.key]}"
        yield from _answer_said(found)
        for model, other in self.others:
            yield "model", f"{model}, which is cheaper"
            yield from _answer_said(other)
        yield "limits", self._limits()
        if found.together:
            yield "together", _together(found.together)
        yield "clock", _clock(found.ahead)
        yield "models", self._models()
        requests, tokens = self._cost
        yield "cost", f"{requests} request{'s' * (requests != 1)}, {tokens:,} tokens"

    def _limits(self) -> str:
        told = [
            f"{quota.limit:,.0f} {what} a minute"
            for quota, what in (
                (self.found.per_request, "requests"),
                (self.found.per_token, "tokens"),
            )
            if quota is not None and quota.limit is not None
        ]
        return f"{' and '.join(told)}, by its headers" if told else "its headers tell none"

    def _models(self) -> str:
        models = self.found.models
        if models is None:
            return "it has no list of models"
        if self.model not in [model.name for model in models]:
            return f"{len(models)} listed, {self.model} is not among them"
        context, ours = self.listed_context, self.provider.context
        if context is None:
            return f"{len(models)} listed, this one among them; its context is not told"
        if context == ours:
            return f"{len(models)} listed; a context of {context:,} tokens, as configured"
        return f"{len(models)} listed; a context of {context:,} tokens, configured are {ours:,}"


def check(flags: Flags, together: int) -> Checked:
    """Check the provider that `flags` and fupan.yaml name. Raises UsageError where they name none
    or make no sense."""
    name, provider, models = choose_provider(flags, load_config(flags.config))
    model = models[-1]
    if provider is None:
        raise UsageError(
            "no provider to check: name one with --base-url and --model, or in fupan.yaml"
        )
    if isinstance(provider, LocalProvider):
        raise UsageError(
            f"{provider.base_url} is a model of the cluster: there is no URL and no key to check"
        )
    try:
        key = None if api_key(provider) is None else True
    except Misconfigured as error:
        return Checked(name, provider, model, False, Probe(error=error))
    found, *others = asyncio.run(_probe_all(provider, models, together))
    return Checked(name, provider, model, key, found, tuple(zip(models, others, strict=False)))


async def _probe_all(provider: Provider, models: Sequence[str], together: int) -> list[Probe]:
    """Of the last of `models`, then of the others in their order."""
    *cheaper, best = models
    found = [await probe(provider, best, together)]
    return found + [await probe(provider, model) for model in cheaper]


def _exit_code(found: Probe) -> int:
    error = found.error
    if error is None:
        return 0 if found.reply is not None else 1
    nobody = isinstance(error, Unavailable) and not isinstance(error, TimedOut)
    if isinstance(error, Misconfigured) or (nobody and error.status is None):
        return 2
    return 1


def _answer(found: Probe) -> dict[str, Any]:
    """How a model answered, as values."""
    reply, able = found.reply, found.capabilities
    return {
        "answers": reply is not None,
        "error": None if found.error is None else found.error.message,
        "seconds": round(reply.seconds, 3) if reply else None,
        "answered_as": reply.model if reply else None,
        "json": able.json if reply else None,
        "json_obeyed": found.obeys,
        "output_limit": able.output_limit if reply else None,
        "temperature": able.temperature if reply else None,
        "refused": found.refused,
    }


def _answer_said(found: Probe) -> Iterator[tuple[str, str]]:
    """How a model answered, in words."""
    if found.error is not None:
        yield "answers", f"no: {found.error.message}"
    elif found.reply is not None:
        usage = found.reply.usage
        yield (
            "answers",
            f"yes, after {found.reply.seconds:.1f} s, as {found.reply.model} "
            f"({usage.tokens_in} tokens in, {usage.tokens_out} out)",
        )
        yield "json", _json(found)
        limit = found.capabilities.output_limit
        yield "output", limit if limit != "none" else "its length cannot be limited"
        kept = "accepted" if found.capabilities.temperature else "refused, left out"
        yield "temperature", kept


def _json(found: Probe) -> str:
    mode = found.capabilities.json
    refused = [name for name in found.refused if name.startswith("json_")]
    said = _JSON_MODES[mode]
    if refused:
        said += f" ({', '.join(refused)} refused)"
    if found.obeys:
        return f"{said}; the answer is as asked for"
    weaker: dict[str, Literal["object", "words"]] = {"schema": "object", "object": "words"}
    advice = f"; try json: {weaker[mode]} in fupan.yaml" if mode in weaker else ""
    return f"{said}; but the answer is not as asked for{advice}"


def _quota(told: Quota | None) -> dict[str, float | None] | None:
    return None if told is None else asdict(told)


def _together(seen: Together) -> str:
    said = f"of {seen.sent} at once {seen.answered} answered"
    if seen.answered:
        said += f", the slowest after {seen.slowest:.1f} s"
    if seen.rate_limited:
        said += f"; {seen.rate_limited} rate limited"
        if seen.retry_after is not None:
            said += f", told to wait {seen.retry_after:.1f} s"
    return said + (f"; {seen.failed} failed" if seen.failed else "")


def _clock(ahead: float | None) -> str:
    if ahead is None:
        return "it tells no time"
    if abs(ahead) <= CLOCK_SECONDS:
        return "agrees with the clock here"
    return f"{abs(ahead):,.0f} s {'ahead of' if ahead > 0 else 'behind'} the clock here"
