"""Messages to the model's tokens, and its tokens to text.

Invariant: what is in a message is text, whatever it looks like: only the template writes the
tokens by which the model tells who speaks.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import orjson
from jinja2 import TemplateError
from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from serve.generation.errors import GenerationModelError, overflow, refused
from serve.generation.parameters import Message


class Chat:
    """The template and the tokenizer of one model. Used by several threads."""

    def __init__(self, tokenizer: Any, context: int) -> None:
        """`tokenizer`: a fast one of transformers. Raises GenerationModelError."""
        if not tokenizer.chat_template:
            raise GenerationModelError(
                f"{tokenizer.name_or_path} has no chat template, so it was not made for chat: "
                "name a model that was (an `-Instruct` one)"
            )
        self._tokenizer = tokenizer
        self._context = context
        self._special = [token for token in tokenizer.all_special_tokens if token]
        self._special += [
            str(token) for token in tokenizer.added_tokens_decoder.values() if _is_mark(token)
        ]
        self._plain = _without_marks(tokenizer.backend_tokenizer)
        self._longest = max(len(token) for token in tokenizer.get_vocab())

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """The tokens after which the model answers. Raises Refused and ContextOverflow."""
        messages = [Message(each.role, _valid(each.text)) for each in messages]
        characters = sum(len(each.text) for each in messages)
        if characters > self._context * self._longest:
            # No token is longer than the longest: there is no need to count.
            raise overflow(self._context, characters // self._longest, None)
        if any(special in each.text for each in messages for special in self._special):
            return self._apart(messages)
        return self._tokens(self._rendered(messages))

    def text(self) -> Detokenized:
        """The text of one stream, from its first token on."""
        return Detokenized(self._tokenizer.backend_tokenizer)

    def _apart(self, messages: Sequence[Message]) -> list[int]:
        """As `prompt`, for texts that hold what the template writes: rendered with a mark in place
        of each text, which is made into tokens alone."""
        mark = secrets.token_hex(16)
        named = [Message(each.role, f"{mark}{i:08}") for i, each in enumerate(messages)]
        first, *rest = self._rendered(named).split(mark)
        tokens = self._tokens(first)
        for part in rest:
            text = messages[int(part[:8])].text
            tokens += self._plain.encode(text, add_special_tokens=False).ids
            tokens += self._tokens(part[8:])
        return tokens

    def _rendered(self, messages: Sequence[Message]) -> str:
        given = [{"role": each.role, "content": each.text} for each in messages]
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    given, tokenize=False, add_generation_prompt=True
                )
            )
        except TemplateError as error:
            raise refused(
                f"This model's template does not take these messages: {error}.", "messages"
            ) from error

    def _tokens(self, text: str) -> list[int]:
        encoded = self._tokenizer(text, add_special_tokens=False, verbose=False)
        return list(encoded["input_ids"])


class Detokenized:
    """Implements `sequence.Text`."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._stream = DecodeStream(skip_special_tokens=True)

    def step(self, token: int) -> str:
        """See `sequence.Text`."""
        return self._stream.step(self._tokenizer, token) or ""


def _is_mark(token: Any) -> bool:
    """Whether an added token means something to the model (Qwen's `</think>` is not even special);
    some families have such for runs of spaces, which are text."""
    return bool(token.special or token.content.strip())


def _without_marks(tokenizer: Tokenizer) -> Tokenizer:
    """A copy that makes tokens of text alone."""
    described = orjson.loads(tokenizer.to_str())
    for added in described["added_tokens"]:
        added["special"] = added["special"] or bool(added["content"].strip())
    described["truncation"] = described["padding"] = None
    plain: Tokenizer = Tokenizer.from_str(orjson.dumps(described).decode())
    plain.encode_special_tokens = True
    return plain


def _valid(text: str) -> str:
    """`text` as valid UTF-8: JSON can hold half a character (a lone surrogate)."""
    return text.encode("utf-8", "replace").decode("utf-8")
