"""A request for embeddings, read. Pure.

Invariant: whatever is sent, the outcome is a Wanted or a Refused (400) that names the field, in the
words that the gateway uses for the same mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from serve.ask.errors import AskError, ContextOverflow, Refused
from serve.ask.tokens import text_of
from serve.embedder import clean
from serve.embedding.engine import CHARACTERS_PER_TOKEN
from serve.gateway.errors import BadRequest
from serve.gateway.request import check_embeddings

MOST_INPUTS: Final = 2048
"""Of one request, as OpenAI has it."""

PARAMETERS: Final = frozenset(
    {"model", "input", "dimensions", "encoding_format", "truncate", "user"}
)
"""Of a request: OpenAI's, of which `user` changes no answer, and `truncate`."""

Format = Literal["float", "base64"]
_Error = TypeVar("_Error", bound=AskError)


@dataclass(frozen=True)
class Wanted:
    """What is asked for. `texts`: clean, in order, of CHARACTERS_PER_TOKEN characters at most for
    each token that the model reads; `dimensions`: of the answer's vectors; `truncate`: the model
    may read the beginning of an over-long text alone."""

    model: str
    texts: tuple[str, ...]
    dimensions: int
    encoding: Format
    truncate: bool


def read_wanted(body: Mapping[str, Any], dim: int, most_tokens: int) -> Wanted:
    """The request in `body`, for a model of vectors of `dim` numbers that reads `most_tokens` of a
    text. Raises Refused, and ContextOverflow for a text that has more, as its length tells, and
    must not be cut."""
    try:
        check_embeddings(body, MOST_INPUTS)
    except BadRequest as error:
        raise refused(error.message, error.param, error.code) from error
    for name in body:
        if name not in PARAMETERS:
            raise refused(f"Unknown parameter: '{name}'.", name, "unknown_parameter")
    most_characters = CHARACTERS_PER_TOKEN * most_tokens
    truncate = body.get("truncate", False)
    if not isinstance(truncate, bool):
        raise refused("Invalid 'truncate': send true or false.", "truncate", "invalid_type")
    given = body["input"]
    inputs = given if isinstance(given, list) and not isinstance(given[0], int) else [given]
    texts = []
    for place, one in enumerate(inputs):
        name = "input" if inputs is not given else f"input[{place}]"
        if len(one) > most_characters and not truncate:
            what = "characters" if isinstance(one, str) else "tokens"
            raise over_long(name, f"{len(one):,} {what}", most_tokens)
        text = _text(one[:most_characters], name)
        if len(text) > most_characters and not truncate:  # of tokens
            raise over_long(name, f"more than {most_characters:,} characters", most_tokens)
        texts.append(clean(text[:most_characters]))
    return Wanted(
        model=body["model"],
        texts=tuple(texts),
        dimensions=_dimensions(body.get("dimensions"), dim),
        encoding=_encoding(body.get("encoding_format")),
        truncate=truncate,
    )


def size(body: Mapping[str, Any]) -> int:
    """Of the request in `body`, whatever it holds: characters and token numbers."""
    given = body.get("input")
    if not isinstance(given, list):
        return len(given) if isinstance(given, str) else 0
    return sum(len(one) if isinstance(one, str | list) else 1 for one in given)


def refused(message: str, param: str | None, code: str | None) -> Refused:
    """A Refused as the gateway passes it on."""
    return _told(Refused(message, 400), param, code)


def over_long(name: str, has: str, most_tokens: int) -> ContextOverflow:
    """That the text `name` does not fit the model."""
    message = (
        f"Invalid '{name}': it has {has}; this model reads at most {most_tokens:,} tokens of a "
        'text. Shorten it, or send "truncate": true, and its beginning is read alone.'
    )
    return _told(ContextOverflow(message, 400), name, "context_length_exceeded")


def _told(error: _Error, param: str | None, code: str | None) -> _Error:
    error.said, error.param, error.code = error.message, param, code
    return error


def _text(one: str | list[int], name: str) -> str:
    if isinstance(one, str):
        return one
    try:
        return text_of(one)
    except ValueError as error:
        raise refused(
            f"Invalid '{name}': {error}. Numbers are read as the tokens that OpenAI's embedding "
            "models have, whatever the model: send the text itself.",
            name,
            "invalid_token",
        ) from error


def _dimensions(given: Any, dim: int) -> int:
    if given is None:
        return dim
    if type(given) is not int:
        raise refused("Invalid 'dimensions': send an integer.", "dimensions", "invalid_type")
    if not 1 <= given <= dim:
        raise refused(
            f"Invalid 'dimensions': send an integer from 1 to {dim}, the length of this model's "
            "vectors.",
            "dimensions",
            "integer_below_min_value" if given < 1 else "integer_above_max_value",
        )
    return given


def _encoding(given: Any) -> Format:
    if given is None or given == "float":
        return "float"
    if given == "base64":
        return "base64"
    raise refused(
        'Invalid \'encoding_format\': send "float" or "base64".',
        "encoding_format",
        "invalid_value",
    )
