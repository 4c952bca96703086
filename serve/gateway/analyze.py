"""`POST /v1/analyze`: one document in; keywords, summary, difficulty and a retrospective out.

Each part is one request to a model, all are asked at once and each takes the way of every other
request: the caches, the key's limits, a turn, a provider.

Invariant: what fails of a part is that part's alone; an answer has every part that was asked for,
null where its error stands beside it; where none came, the error of the first is the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import orjson

from serve.ask.capabilities import Capabilities, build_body, rejected_feature
from serve.ask.contract import Request, Usage
from serve.gateway.analysis import (
    KINDS,
    MAX_OUTPUT,
    PARTS,
    SCHEMAS,
    Kind,
    Language,
    Part,
    Unusable,
    check,
    instructions,
    language_of,
    wire,
)
from serve.gateway.contract import Answer, Answered, Stream, Target, Whole
from serve.gateway.errors import BadRequest, GatewayError, ProviderFailed
from serve.gateway.estimate import text_tokens
from serve.gateway.names import AUTO
from serve.gateway.settings import GatewaySettings
from serve.gateway.terms import Terms

MARGIN = 200
"""Tokens around the messages of a chat, beyond what is counted."""
_FIELDS = ("text", "kind", "language", "model", "parts")

Ask = Callable[[Mapping[str, Any], str, Callable[[bytes], bool]], Awaitable[Answer]]
"""Ask a model by the body of a chat completion; the second is what tells the request apart from
the others of the same client's request, the third whether an answer is of use."""


@dataclass(frozen=True, slots=True)
class Document:
    """What a client wants to know about which text."""

    text: str
    kind: Kind | None
    language: Language
    model: str
    parts: tuple[Part, ...]


def read_document(body: Mapping[str, Any], default_model: str) -> Document:
    """The document of a request. Raises BadRequest that names the field."""
    for name in body:
        if name not in _FIELDS:
            raise BadRequest(
                f"Unknown parameter: '{name[:100]}'. Known are: {', '.join(_FIELDS)}.",
                param=name[:100],
                code="unknown_parameter",
            )
    text = body.get("text")
    if not isinstance(text, str) or not text.strip():
        raise BadRequest(
            "Send the document as a string that is not empty in 'text'.",
            param="text",
            code="invalid_document",
        )
    kind = _one_of(body, "kind", KINDS)
    asked: Language | Literal["auto"] = _one_of(body, "language", ("zh", "en", "auto")) or "auto"
    model = body.get("model", default_model)
    if not isinstance(model, str) or not model:
        raise BadRequest("Send the name of a model in 'model'.", param="model")
    return Document(
        text=text,
        kind=kind,
        language=language_of(text) if asked == "auto" else asked,
        model=model,
        parts=_parts(body.get("parts")),
    )


def _one_of(body: Mapping[str, Any], name: str, known: Sequence[Any]) -> Any:
    value = body.get(name)
    if value is not None and value not in known:
        raise BadRequest(f"'{name}' is one of: {', '.join(known)}.", param=name)
    return value


def _parts(given: object) -> tuple[Part, ...]:
    if given is None:
        return PARTS
    if not isinstance(given, list) or not given or not all(part in PARTS for part in given):
        raise BadRequest(f"'parts' is a list of some of: {', '.join(PARTS)}.", param="parts")
    return tuple(part for part in PARTS if part in given)


class Analyst:
    """Asks about documents. It remembers which JSON mode each model was found to take."""

    def __init__(self, settings: GatewaySettings, terms: Mapping[Target, Terms]) -> None:
        self._terms = terms
        self._auto = settings.serve.auto is not None
        self._capabilities: dict[Target, Capabilities] = {}

    @property
    def default_model(self) -> str:
        """Asked where a client names none: whom `auto` chooses, else the first that writes."""
        if self._auto:
            return AUTO
        writing = (target for target, terms in self._terms.items() if terms.writes)
        return str(next(writing, next(iter(self._terms))))

    async def analyze(self, document: Document, targets: Sequence[Target], ask: Ask) -> Whole:
        """Everything that is asked about `document`, of `targets`. Raises BadRequest
        (document_too_long), and the error of the first part where none came."""
        self._check_length(document, targets[0])
        came = await asyncio.gather(
            *(self._part(document, part, targets[0], ask) for part in document.parts),
            return_exceptions=True,
        )
        values: dict[str, Any] = {}
        errors: dict[str, Any] = {}
        answered: list[Answered] = []
        for part, one in zip(document.parts, came, strict=True):
            if isinstance(one, _Came):
                answered.append(one.about)
                values[part] = one.value
                if one.error is not None:
                    errors[part] = one.error.body()["error"]
            else:
                if not isinstance(one, GatewayError):
                    raise one
                values[part] = None
                errors[part] = one.body()["error"]
        if len(errors) == len(values):
            raise _first_error(came)
        about = summed(answered)
        return Whole(orjson.dumps(_shown(document, values, errors, about)), about)

    def _check_length(self, document: Document, target: Target) -> None:
        most = max(MAX_OUTPUT[part] for part in document.parts)
        told = max(
            text_tokens(instructions(part, document.language, document.kind))
            for part in document.parts
        )
        room = self._terms[target].context - most - told - MARGIN
        tokens = text_tokens(document.text)
        if tokens > room:
            raise BadRequest(
                f"The document has about {tokens:,} tokens, and {target} takes {max(room, 0):,} "
                "at most: send it in pieces, or ask a model with more context.",
                param="text",
                code="document_too_long",
            )

    async def _part(self, document: Document, part: Part, target: Target, ask: Ask) -> _Came:
        """One part, with what the model was found to take of the ways to ask for JSON."""
        request = Request(
            system=instructions(part, document.language, document.kind),
            user=wire(document.text),
            max_output=MAX_OUTPUT[part],
            estimate_in=0,
            timeout=0.0,
            schema=SCHEMAS[part],
            schema_name=part,
        )

        def usable(body: bytes) -> bool:
            return _judged(part, Whole(body), document.text).error is None

        while True:
            capabilities = self._capabilities_of(target)
            body = build_body(request, document.model, capabilities, {})
            try:
                answer = await ask(body, f"{part}-{capabilities.json}", usable)
            except BadRequest as error:
                feature = rejected_feature(body, error.message, error.param)
                if feature is None:
                    raise _too_long(error) from error
                if self._capabilities_of(target) == capabilities:
                    self._capabilities[target] = capabilities.without(feature)
                continue
            if isinstance(answer, Stream):
                await answer.aclose()
                raise ProviderFailed("a whole answer was asked for, and a stream came")
            return _judged(part, answer, document.text)

    def _capabilities_of(self, target: Target) -> Capabilities:
        known = self._capabilities.get(target)
        if known is None:
            known = Capabilities(json=self._terms[target].json)
        return known


@dataclass(frozen=True, slots=True)
class _Came:
    """An answer that was paid for. `error`: why it is worth nothing."""

    about: Answered
    value: Any = None
    error: GatewayError | None = None


def _judged(part: Part, answer: Whole, text: str) -> _Came:
    try:
        return _Came(answer.about, check(part, _content(answer.body), text))
    except Unusable as error:
        failed = ProviderFailed(f"{error}; ask again", code="unusable_answer")
        return _Came(answer.about, error=failed)


def _content(body: bytes) -> str:
    """What the model wrote. Raises Unusable where it did not finish, or refused."""
    try:
        choice = orjson.loads(body)["choices"][0]
        message, reason = choice["message"], choice.get("finish_reason")
        content, refusal = message.get("content"), message.get("refusal")
    except (ValueError, LookupError, TypeError, AttributeError):
        raise Unusable("the answer is no chat completion") from None
    if refusal or reason == "content_filter":
        raise Unusable("the model refused to answer")
    if reason == "length":
        raise Unusable("the answer was cut off")
    if not isinstance(content, str):
        raise Unusable("the answer is empty")
    return content


def _too_long(error: BadRequest) -> BadRequest:
    """What the provider says where our count of the tokens was too low, as we say it."""
    if error.code != "context_length_exceeded":
        return error
    return BadRequest(error.message, param="text", code="document_too_long")


def _first_error(came: Sequence[object]) -> GatewayError:
    for one in came:
        error = one.error if isinstance(one, _Came) else one
        if isinstance(error, GatewayError):
            return error
    raise AssertionError("where no part came, each has an error")


def summed(answered: Sequence[Answered]) -> Answered:
    """What several answers took together. Their cost is known where each one's is, in one
    currency; times are those of the slowest."""
    usages = [one.usage for one in answered if one.usage is not None]
    costs = [one.cost for one in answered if one.cost is not None]
    currencies = {one.currency for one in answered if one.cost}
    known = 0 < len(costs) == len(answered) and len(currencies) <= 1
    firsts = [one.first_byte for one in answered if one.first_byte is not None]
    lasts = [one.last_byte for one in answered if one.last_byte is not None]
    return Answered(
        target=next((one.target for one in answered if one.target is not None), None),
        usage=Usage(
            sum(usage.tokens_in for usage in usages),
            sum(usage.tokens_out for usage in usages),
            sum(usage.cached for usage in usages),
        ),
        cost=sum(costs, Decimal(0)) if known else None,
        currency=next(iter(currencies), None) if known else None,
        attempts=sum(one.attempts for one in answered),
        queued=max((one.queued for one in answered), default=0.0),
        first_byte=min(firsts, default=None),
        last_byte=max(lasts, default=None),
    )


def _shown(
    document: Document, values: Mapping[str, Any], errors: Mapping[str, Any], about: Answered
) -> dict[str, Any]:
    usage = about.usage or Usage()
    return {
        "object": "analysis",
        "model": str(about.target) if about.target else document.model,
        "language": document.language,
        **values,
        "errors": errors,
        "usage": {
            "prompt_tokens": usage.tokens_in,
            "completion_tokens": usage.tokens_out,
            "total_tokens": usage.tokens_in + usage.tokens_out,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
        },
        "cost": None if about.cost is None else f"{about.cost:f}",
        "currency": about.currency,
    }
