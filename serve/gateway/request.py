"""A client's request, read: what decides is checked, all the rest is passed through. Pure.

Invariant: whatever a client sends, the outcome is a value or a BadRequest that names the field;
nothing of the body is changed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from serve.gateway.errors import BadRequest

MOST_ID = 128
"""Characters of a request id that is taken over from the client."""
MOST_CHOICES = 128
"""Of one request, as OpenAI has it."""
MOST_TOKENS = 2**31 - 1
"""Of an answer: more than any model gives, and few enough to reckon with."""
DEEPEST = 254
"""Levels of nesting that orjson writes."""
MOST_JOINED = 16
"""Tokens that one event of a stream carries at most; see `ServeSettings.join_tokens`."""

Headers = Mapping[str, str]
"""Of a request: names in lower case; of a header sent twice, the last."""


def headers_of(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers of an ASGI scope."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in raw}


def request_id(given: str | None) -> str:
    """The client's own id where it is printable ASCII of at most MOST_ID characters, else one that
    is made up."""
    if given and len(given) <= MOST_ID and given.isascii() and given.isprintable():
        return given
    return f"req_{secrets.token_hex(12)}"


def idempotency_key(headers: Headers) -> str | None:
    """The client's `Idempotency-Key`. Raises BadRequest for one that is too long or not printable
    ASCII."""
    given = headers.get("idempotency-key")
    if not given:
        return None
    if len(given) > 2 * MOST_ID or not (given.isascii() and given.isprintable()):
        raise BadRequest(
            f"Invalid 'Idempotency-Key': send at most {2 * MOST_ID} printable ASCII characters.",
            param="Idempotency-Key",
        )
    return given


def tokens_joined(headers: Headers, default: int) -> int:
    """How many tokens one event carries, by `x-fupan-join`. Raises BadRequest."""
    given = headers.get("x-fupan-join")
    if given is None:
        return default
    if given.isascii() and given.isdecimal() and 1 <= int(given[:3]) <= MOST_JOINED:
        return int(given[:3])
    raise BadRequest(
        f"Invalid 'x-fupan-join': send a number from 1 to {MOST_JOINED}.", param="x-fupan-join"
    )


def read_object(raw: bytes) -> dict[str, Any]:
    """The JSON object of a body. Raises BadRequest."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise BadRequest(
            f"We could not parse the JSON body of your request: {error.msg} (line {error.lineno}, "
            f"column {error.colno}). Send one JSON object in UTF-8.",
        ) from error
    if not isinstance(body, dict):
        raise BadRequest("The body of your request is JSON but no object. Send one JSON object.")
    if raw.count(b"[") + raw.count(b"{") > DEEPEST:
        _check_depth(body)
    return body


def _check_depth(body: dict[str, Any]) -> None:
    """Raises BadRequest for what can be read but not written again, to be sent on."""
    try:
        orjson.dumps(body)
    except orjson.JSONEncodeError:
        raise BadRequest(
            f"The body of your request is nested deeper than {DEEPEST} levels."
        ) from None


def check_chat(body: Mapping[str, Any]) -> None:
    """Raises BadRequest for a chat completion that cannot be asked for."""
    _check_model(body)
    messages = body.get("messages")
    if messages is None:
        raise _missing("messages")
    if not isinstance(messages, list):
        raise _wrong_type("messages", "an array of objects", messages)
    if not messages:
        raise BadRequest(
            "Invalid 'messages': empty array. Send at least one message.",
            param="messages",
            code="empty_array",
        )
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise _wrong_type(f"messages[{index}]", "an object", message)
    stream = body.get("stream")
    if stream is not None and not isinstance(stream, bool):
        raise _wrong_type("stream", "a boolean", stream)
    options = body.get("stream_options")
    if options is not None:
        _check_stream_options(options, bool(stream))
    _check_count(body, "n", MOST_CHOICES)
    _check_count(body, "max_tokens", MOST_TOKENS)
    _check_count(body, "max_completion_tokens", MOST_TOKENS)
    temperature = body.get("temperature")
    if temperature is not None and (
        isinstance(temperature, bool) or not isinstance(temperature, int | float)
    ):
        raise _wrong_type("temperature", "a number", temperature)


def check_embeddings(body: Mapping[str, Any], most: int) -> int:
    """How many inputs it has: one for a text or a list of token numbers. Raises BadRequest for what
    is none, and for more than `most`."""
    _check_model(body)
    given = body.get("input")
    if given is None:
        raise _missing("input")
    if isinstance(given, str):
        if not given:
            raise _empty_input("input")
        return 1
    if not isinstance(given, list):
        raise _wrong_type("input", "a string or an array", given)
    if not given:
        raise _empty_input("input")
    if _is_number(given[0]):
        _check_numbers("input", given)
        return 1
    if len(given) > most:
        raise BadRequest(
            f"Invalid 'input': {len(given)} inputs, and at most {most} are taken at once. Send "
            "them in several requests.",
            param="input",
            code="array_above_max_length",
        )
    for index, one in enumerate(given):
        if not one and isinstance(one, str | list):
            raise _empty_input(f"input[{index}]")
        if isinstance(one, list):
            _check_numbers(f"input[{index}]", one)
        elif not isinstance(one, str):
            raise _wrong_type(f"input[{index}]", "a string or an array of token numbers", one)
    return len(given)


def output_limit(body: Mapping[str, Any]) -> int | None:
    """The output tokens a chat asks for at most, of all its choices; None: it does not say. Where
    it says both, a provider may heed either."""
    limits = [body.get("max_completion_tokens"), body.get("max_tokens")]
    limit = max((int(limit) for limit in limits if limit is not None), default=None)
    return None if limit is None else limit * int(body.get("n") or 1)


def wants_usage(body: Mapping[str, Any]) -> bool:
    """Whether a stream is to end with its usage."""
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _check_model(body: Mapping[str, Any]) -> None:
    model = body.get("model")
    if model is None or model == "":
        raise BadRequest(
            "Missing required parameter: 'model'.", param="model", code="missing_required_parameter"
        )
    if not isinstance(model, str):
        raise _wrong_type("model", "a string", model)


def _check_stream_options(options: object, stream: bool) -> None:
    if not isinstance(options, dict):
        raise _wrong_type("stream_options", "an object", options)
    if not stream:
        raise BadRequest(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            param="stream_options",
        )
    include = options.get("include_usage")
    if include is not None and not isinstance(include, bool):
        raise _wrong_type("stream_options.include_usage", "a boolean", include)


def _check_count(body: Mapping[str, Any], name: str, most: int) -> None:
    value = body.get(name)
    if value is None:
        return
    if not _is_number(value):
        raise _wrong_type(name, "an integer", value)
    if not 1 <= value <= most:
        raise BadRequest(
            f"Invalid '{name}': send an integer from 1 to {most}.",
            param=name,
            code="integer_below_min_value" if value < 1 else "integer_above_max_value",
        )


def _check_numbers(name: str, values: list[Any]) -> None:
    for value in values:
        if not _is_number(value):
            raise _wrong_type(name, "an array of token numbers", values)


def _is_number(value: object) -> bool:
    return type(value) is int  # not a bool, which is an int too


def _missing(name: str) -> BadRequest:
    return BadRequest(
        f"Missing required parameter: '{name}'.", param=name, code="missing_required_parameter"
    )


def _empty_input(name: str) -> BadRequest:
    return BadRequest(f"Invalid '{name}': it is empty.", param=name, code="empty_input")


def _wrong_type(name: str, expected: str, value: object) -> BadRequest:
    return BadRequest(
        f"Invalid type for '{name}': expected {expected}, but got {_JSON_TYPES[type(value)]}.",
        param=name,
        code="invalid_type",
    )


_JSON_TYPES = {
    type(None): "null",
    bool: "a boolean",
    int: "an integer",
    float: "a decimal",
    str: "a string",
    list: "an array",
    dict: "an object",
}
