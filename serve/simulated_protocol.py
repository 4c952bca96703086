"""The OpenAI chat-completions protocol, seen from the provider's side.

Written from the protocol's public reference: what a request may hold, how it is refused, how the
tokens of a prompt are counted. Invariant: a request that does not fit
the protocol gets past `read_request` and `check_request` never; every refusal is an ApiError.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from serve.ask.tokens import count
from serve.simulated_schema import strict_problem
from serve.simulated_settings import Feature

INVALID = "invalid_request_error"
_NOT_SIMULATED = ("functions", "logprobs", "stop", "audio")
_MESSAGE_OVERHEAD = 3
"""Tokens around each message, and once more before the answer (OpenAI's cookbook for cl100k)."""


_Form = TypeVar("_Form", bound=BaseModel)


class ApiError(Exception):
    """A refusal as the protocol words it. `retry_after`: seconds, None where none is told."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = INVALID,
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.code = code
        self.param = param
        self.retry_after = retry_after

    def body(self) -> bytes:
        """The JSON body of the error."""
        error = {
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        }
        return orjson.dumps({"error": error})


def _join_parts(value: object) -> object:
    """A message's content as one string; a list of text parts is joined."""
    if not isinstance(value, list):
        return value
    texts = [p.get("text") for p in value if isinstance(p, dict) and p.get("type") == "text"]
    if len(texts) != len(value) or not all(isinstance(t, str) for t in texts):
        raise ValueError("only parts of type 'text' are understood by this model")
    return "".join(t for t in texts if isinstance(t, str))


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True)


class Message(_Strict):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[str | None, BeforeValidator(_join_parts)] = None


class JsonSchema(_Strict):
    """The schema of a `response_format` of type `json_schema`."""

    name: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    schema_: dict[str, Any] = Field(default_factory=dict, alias="schema")
    strict: bool | None = None


class ResponseFormat(_Strict):
    """What form the answer must have."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class StreamOptions(_Strict):
    """Options of a streamed answer."""

    include_usage: bool = False


class Function(_Strict):
    """A function that the model may call."""

    name: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    parameters: dict[str, Any] = {}


class Tool(_Strict):
    """A tool that the model may use."""

    type: Literal["function"]
    function: Function


class ChatRequest(_Strict):
    """The body of a chat-completions request; fields not named here are ignored."""

    model: str
    messages: list[Message] = Field(min_length=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    n: int | None = Field(default=None, ge=1)
    response_format: ResponseFormat | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: list[Tool] | None = None
    tool_choice: str | dict[str, Any] | None = None

    @property
    def max_output(self) -> int | None:
        """Tokens the answer may have, None where the request does not say."""
        return self.max_completion_tokens or self.max_tokens

    def text_of(self, *roles: str) -> str:
        """The contents of all messages of these roles, a line break between them."""
        return "\n".join(m.content for m in self.messages if m.role in roles and m.content)

    def prompt_tokens(self) -> int:
        """Tokens of the prompt, the framing of the messages included."""
        return _MESSAGE_OVERHEAD + sum(message_tokens(m) for m in self.messages)


def message_tokens(message: Message) -> int:
    """Tokens of one message with its framing."""
    return _MESSAGE_OVERHEAD + count(message.role) + count(message.content or "")


def _param(location: tuple[int | str, ...]) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(parts).removeprefix(".")


def read_request(body: bytes) -> ChatRequest:
    """The chat in a body. Raises ApiError (400) that names the parameter that is wrong."""
    return read_as(ChatRequest, body)


def read_as(form: type[_Form], body: bytes) -> _Form:
    """The request of that form in a body. Raises ApiError (400) as `read_request` does."""
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ApiError(400, f"The body of the request is not valid JSON: {error}") from error
    if not isinstance(fields, dict):
        raise ApiError(400, "The body of the request must be a JSON object.")
    for name in _NOT_SIMULATED:
        if fields.get(name):
            raise ApiError(
                400,
                f"Unsupported parameter: '{name}' is not supported with this model.",
                code="unsupported_parameter",
                param=name,
            )
    try:
        return form.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        param = _param(first["loc"])
        if first["type"] == "missing":
            raise ApiError(
                400,
                f"Missing required parameter: '{param}'.",
                code="missing_required_parameter",
                param=param,
            ) from error
        code = "invalid_type" if first["type"].endswith("_type") else "invalid_value"
        raise ApiError(
            400, f"Invalid value for '{param}': {first['msg']}.", code=code, param=param
        ) from error


def _check_features(request: ChatRequest, unsupported: frozenset[Feature]) -> None:
    form = request.response_format.type if request.response_format else "text"
    if form in unsupported:
        raise ApiError(
            400,
            f"Invalid parameter: 'response_format' of type '{form}' is not supported"
            " with this model.",
            param="response_format",
        )
    other = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
    for name, instead in other.items():
        if name in unsupported and getattr(request, name) is not None:
            raise ApiError(
                400,
                f"Unsupported parameter: '{name}' is not supported with this model."
                f" Use '{instead}' instead.",
                code="unsupported_parameter",
                param=name,
            )
    if "temperature" in unsupported and request.temperature not in (None, 1):
        raise ApiError(
            400,
            f"Unsupported value: 'temperature' does not support {request.temperature:g} with"
            " this model. Only the default (1) value is supported.",
            code="unsupported_value",
            param="temperature",
        )
    if "stream" in unsupported and request.stream:
        raise ApiError(
            400,
            "Unsupported value: 'stream' does not support true with this model.",
            code="unsupported_value",
            param="stream",
        )


def _check_format(request: ChatRequest) -> None:
    form = request.response_format
    if form is None or form.type == "text":
        return
    if form.type == "json_object":
        if not any("json" in (m.content or "").lower() for m in request.messages):
            raise ApiError(
                400,
                "To use 'response_format' of type 'json_object', 'messages' must contain the word"
                " 'json' in some form.",
                param="messages",
            )
        return
    if form.json_schema is None:
        raise ApiError(
            400,
            "Missing required parameter: 'response_format.json_schema'.",
            code="missing_required_parameter",
            param="response_format.json_schema",
        )
    problem = strict_problem(form.json_schema.schema_) if form.json_schema.strict else None
    if problem:
        raise ApiError(
            400,
            f"Invalid schema for response_format '{form.json_schema.name}': {problem}.",
            param="response_format",
        )


def check_request(request: ChatRequest, unsupported: frozenset[Feature]) -> None:
    """Raises ApiError (400) for what the model does not support and what does not go together."""
    _check_features(request, unsupported)
    if request.max_tokens is not None and request.max_completion_tokens is not None:
        raise ApiError(
            400,
            "'max_tokens' and 'max_completion_tokens' cannot be set at the same time.",
            param="max_tokens",
        )
    if request.n not in (None, 1):
        raise ApiError(
            400,
            "Unsupported value: 'n' must be 1 with this model.",
            code="unsupported_value",
            param="n",
        )
    _check_format(request)
