"""What a provider's dialect of chat completions can do, found out by asking.

Invariant: a feature that was rejected once is off for the rest of the run, and every rejection
turns exactly one feature off, so stepping down ends after a handful of requests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import orjson

from serve.ask.contract import Request

JsonMode = Literal["schema", "object", "words"]
OutputLimit = Literal["max_tokens", "max_completion_tokens", "none"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What is still on. The defaults are what most providers take."""

    json: JsonMode = "schema"
    output_limit: OutputLimit = "max_tokens"
    temperature: bool = True

    def without(self, feature: str) -> Capabilities:
        """The capabilities after the provider rejected `feature`."""
        if feature == "json_schema":
            return replace(self, json="object")
        if feature == "json_object":
            return replace(self, json="words")
        if feature == "max_tokens":
            return replace(self, output_limit="max_completion_tokens")
        if feature == "max_completion_tokens":
            return replace(self, output_limit="none")
        if feature == "temperature":
            return replace(self, temperature=False)
        raise ValueError(f"unknown feature {feature!r}")


_FIELDS = ("max_tokens", "max_completion_tokens", "temperature", "stream_options")


def features_of(body: Mapping[str, Any]) -> list[str]:
    """The features a request body uses: those that `Capabilities.without` takes, and
    `stream_options`."""
    found = [name for name in _FIELDS if name in body]
    kind = (body.get("response_format") or {}).get("type")
    if kind in ("json_schema", "json_object"):
        found.insert(0, kind)
    return found


def build_body(
    request: Request, model: str, capabilities: Capabilities, extra_body: Mapping[str, Any]
) -> dict[str, Any]:
    """The JSON body of one chat completion. Without a JSON mode the schema goes into the system
    message, since nothing else tells the model what to answer."""
    system = request.system
    body: dict[str, Any] = {"model": model}
    if request.schema is not None:
        if capabilities.json == "schema":
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {
                    "name": request.schema_name,
                    "strict": True,
                    "schema": request.schema,
                },
            }
        else:
            schema = orjson.dumps(request.schema).decode()
            system += f"\n\nAnswer with one JSON object and nothing else. Its schema: {schema}"
            if capabilities.json == "object":
                body["response_format"] = {"type": "json_object"}
    body["messages"] = [
        {"role": "system", "content": system},
        {"role": "user", "content": request.user},
    ]
    if capabilities.output_limit != "none":
        body[capabilities.output_limit] = request.max_output
    if capabilities.temperature:
        body["temperature"] = request.temperature
    return body | dict(extra_body)


def rejected_feature(body: Mapping[str, Any], message: str, param: str | None) -> str | None:
    """Which feature of `body` a 400 rejects, or None if it rejects something else.

    `param` is the error's own field and decides where the provider fills it; otherwise the message
    must name the feature and say that it is not taken: an error may echo the text of a record, in
    which the name of a parameter means nothing.
    """
    said = (param or message).lower()
    if not param and not _REFUSAL.search(said):
        return None
    for feature in features_of(body):
        names = {feature}
        if feature.startswith("json_"):
            names |= {"response_format", "structured output", "json mode"}
        if any(name in said for name in names):
            return feature
    return None


_REFUSAL = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|invalid|not (?:allowed|permitted|available)|extra"
)
