"""The body of a chat completion -> what is asked of the model. Pure.

Invariant: nothing that would change the answer is ignored: what is not understood, or not
supported, is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from serve.generation.errors import refused
from serve.generation.sampling import Sampling
from serve.models.tenant import TENANT

MOST_STOPS = 4
MOST_TOP_LOGPROBS = 20
"""Both as OpenAI has it."""

_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "parallel_tool_calls": (True, False),
    "functions": ([],),
    "modalities": (["text"],),
    "store": (False,),
    "service_tier": ("auto", "default"),
}
"""Parameters that this model does not have, and the values with which they change nothing."""
_OF_ANSWERS = ("refusal", "tool_calls", "function_call", "audio", "annotations")
"""What an answer's message has beside its text. A client sends it back, null or empty."""
_IGNORED = frozenset({"user", "metadata", "safety_identifier", "prompt_cache_key"})
"""Those that say who asks, and change no answer."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Message(_Strict):
    role: Literal["system", "developer", "user", "assistant"]
    content: str
    name: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_nothing(cls, value: Any) -> Any:
        """Without the fields that say nothing."""
        if not isinstance(value, Mapping):
            return value
        nothing: tuple[Any, ...] = (None, [])
        return {
            name: each
            for name, each in value.items()
            if name not in _OF_ANSWERS or each not in nothing
        }

    @field_validator("content", mode="before")
    @classmethod
    def _joined(cls, value: Any) -> Any:
        """One text, also where it comes in parts."""
        if not isinstance(value, list):
            return value
        texts = [part["text"] for part in value if _is_text(part)]
        if len(texts) < len(value):
            raise ValueError("of the parts of a message only those of the type text are supported")
        return "".join(texts)


def _is_text(part: Any) -> bool:
    wanted = isinstance(part, Mapping) and part.get("type") == "text"
    return wanted and isinstance(part.get("text"), str)


class _JsonSchema(_Strict):
    name: str
    description: str | None = None
    schema_: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None


class _PlainFormat(_Strict):
    type: Literal["text", "json_object"]


class _SchemaFormat(_Strict):
    type: Literal["json_schema"]
    json_schema: _JsonSchema


class _StreamOptions(_Strict):
    include_usage: bool = False
    include_obfuscation: bool = False


_Count = Annotated[int, Field(ge=1)]
_Stop = Annotated[str, Field(min_length=1)]


class _Body(_Strict):
    model: str
    tenant: str = Field("", alias=TENANT)
    messages: Annotated[list[_Message], Field(min_length=1)]
    max_tokens: _Count | None = None
    max_completion_tokens: _Count | None = None
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = None
    seed: int | None = None
    stop: Annotated[list[_Stop], Field(max_length=MOST_STOPS)] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MOST_TOP_LOGPROBS)] | None = None
    response_format: Annotated[_PlainFormat | _SchemaFormat, Field(discriminator="type")] | None = (
        None
    )

    @field_validator("stop", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.top_logprobs and not self.logprobs:
            raise ValueError("top_logprobs: needs logprobs: true")
        if self.stop and self.wanted is not None:
            raise ValueError("stop: would cut the JSON that response_format asks for")
        return self

    @property
    def wanted(self) -> dict[str, Any] | None:
        """What the answer must fit; None: any text."""
        if isinstance(self.response_format, _SchemaFormat):
            return self.response_format.json_schema.schema_
        json_object = self.response_format and self.response_format.type == "json_object"
        return {"type": "object"} if json_object else None


class Message(NamedTuple):
    """One message, its parts joined."""

    role: str
    text: str


class Asked(NamedTuple):
    """A chat completion as it is asked of the model. `most`: tokens of the answer, None: as many
    as fit; `top_logprobs`: None: no logprobs; `schema`: of the JSON to be answered; `tenant`: who
    shares nothing with any other."""

    model: str
    messages: tuple[Message, ...]
    most: int | None
    sampling: Sampling
    seed: int | None
    stops: tuple[str, ...]
    top_logprobs: int | None
    schema: Mapping[str, Any] | None
    include_usage: bool
    tenant: str = ""


def read_asked(body: Mapping[str, Any]) -> Asked:
    """What `body` asks for. Raises Refused, which names the first parameter that is wrong."""
    given = {name: value for name, value in body.items() if name not in _IGNORED}
    for name, neutral in _NEUTRAL.items():
        value = given.pop(name, None)
        if value is not None and value not in neutral:
            raise refused(f"{name} is not supported by this model: leave it out.", name)
    try:
        read = _Body.model_validate(given)
    except ValidationError as error:
        raise _refusal(error) from error
    return Asked(
        read.model,
        tuple(Message(_role(each.role), each.content) for each in read.messages),
        read.max_completion_tokens or read.max_tokens,
        Sampling(
            1.0 if read.temperature is None else read.temperature,
            1.0 if read.top_p is None else read.top_p,
        ),
        read.seed,
        tuple(read.stop or ()),
        (read.top_logprobs or 0) if read.logprobs else None,
        read.wanted,
        read.stream_options is not None and read.stream_options.include_usage,
        read.tenant,
    )


def _role(role: str) -> str:
    """OpenAI's newer name for the system is in no model's template."""
    return "system" if role == "developer" else role


def _refusal(error: ValidationError) -> Exception:
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"] if not str(part).startswith("_"))
    if first["type"] == "extra_forbidden":
        return refused(f"Unknown parameter: '{where}'.", where, "unknown_parameter")
    said = str(first["msg"]).removeprefix("Value error, ")
    if not where:
        where, _, said = said.partition(": ")
    return refused(f"Invalid '{where}': {said}.", where, "invalid_value")
