"""JSON schemas as grammars over a model's tokens, by llguidance.

Invariant: what a grammar lets through is valid JSON once it may end; building one and asking it
for the next token cost a bounded time and memory, and one that would cost more is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import orjson
from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from llguidance.hf import from_tokenizer
from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask
from numpy.typing import NDArray

from serve.ask.errors import Refused
from serve.generation.errors import refused

MOST_SCHEMA_BYTES = 256 * 1024
"""Of a schema as JSON. The library's own limits (a million units of fuel, some 20 ms, to build the
lexer; 200,000, some 15 ms, for a token) bound the rest."""
KEPT = 64
"""Grammars that are kept: an application asks with the same few."""
_LIMITS = LLParserLimits(verbose_errors=False)
_JSON: Any = {"whitespace_flexible": False}
"""A small model that may write spaces between the tokens of JSON goes on with them for ever."""


class Grammars:
    """The grammars of one model."""

    def __init__(self, tokenizer: Any, vocabulary: int, ends: frozenset[int]) -> None:
        """`tokenizer`: a fast one of transformers; `vocabulary`: logits of the model."""
        self._tokenizer = from_tokenizer(
            tokenizer,
            n_vocab=vocabulary,
            eos_token=sorted(ends),
            slices=LLTokenizer.json_slices(),
        )
        self._vocabulary = vocabulary
        self._compiled = lru_cache(maxsize=KEPT)(self._compile)

    def bytes_of(self, token: int) -> bytes:
        """What a token stands for; a part of a character, maybe."""
        return bytes(self._tokenizer.decode_bytes([token]))

    def of(self, schema: Mapping[str, Any]) -> Matcher:
        """The grammar of JSON that fits `schema`, at its beginning. Raises Refused."""
        try:
            written = orjson.dumps(schema)
        except (TypeError, ValueError) as error:
            raise refused(f"Invalid schema: {error}.", "response_format") from error
        if len(written) > MOST_SCHEMA_BYTES:
            raise refused(
                f"The schema has {len(written)} bytes; {MOST_SCHEMA_BYTES} are allowed.",
                "response_format",
            )
        return Matcher(self._compiled(written).deep_copy(), self._vocabulary)

    def _compile(self, schema: bytes) -> LLMatcher:
        try:
            grammar = LLMatcher.grammar_from_json_schema(schema.decode(), overrides=_JSON)
        except ValueError as error:
            raise _invalid(str(error)) from error
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0, limits=_LIMITS)
        if matcher.is_error():
            raise _invalid(matcher.get_error())
        return matcher


class Matcher:
    """Where one stream is in its grammar. Implements `sequence.Grammar`."""

    def __init__(self, matcher: LLMatcher, vocabulary: int) -> None:
        self._matcher = matcher
        self._mask = allocate_token_bitmask(1, vocabulary)
        self._vocabulary = vocabulary

    def allowed(self) -> NDArray[np.bool_]:
        """See `sequence.Grammar`."""
        fill_next_token_bitmask(self._matcher, self._mask)
        self._check()
        bits = np.unpackbits(self._mask.view(np.uint8), bitorder="little")
        allowed = bits[: self._vocabulary].view(np.bool_)
        if not allowed.any():
            raise _invalid("no JSON fits it")
        return allowed

    def take(self, token: int) -> None:
        """See `sequence.Grammar`."""
        self._matcher.consume_token(token)
        self._check()

    def forced(self) -> list[int]:
        """See `sequence.Grammar`."""
        return list(self._matcher.compute_ff_tokens())

    def complete(self) -> bool:
        """See `sequence.Grammar`."""
        return bool(self._matcher.is_stopped())

    def _check(self) -> None:
        if self._matcher.is_error():
            raise _invalid(self._matcher.get_error())


def _invalid(why: str) -> Refused:
    why = " ".join(why.split("<non-verbose/>")[0].split())[:300]
    return refused(f"This schema cannot be followed: {why}.", "response_format", "invalid_schema")
