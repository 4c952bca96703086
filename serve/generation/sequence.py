"""One stream: what was read and written, what may be shown of it, and why it ended.

Invariant: the pieces, taken together, are the whole answer: valid text without a half character,
without a stop string and without what only the model needs; the last one says why it ended.
"""

from __future__ import annotations

import random
from collections.abc import Sequence as Row
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from serve.generation.sampling import Logits, Sampling, TokenLogprob, choose, logprobs
from serve.generation.stops import StopStrings

Finish = Literal["stop", "length"]


class Text(Protocol):
    """Turns one stream's tokens into text."""

    def step(self, token: int) -> str:
        """The text that is complete with `token`; empty within a character."""
        ...


class Grammar(Protocol):
    """Which tokens one stream may write. Each method raises an AskError where it costs too much."""

    def allowed(self) -> NDArray[np.bool_]:
        """Of each token of the vocabulary, whether it may be next."""
        ...

    def take(self, token: int) -> None:
        """`token` is the next."""
        ...

    def forced(self) -> list[int]:
        """The tokens after which there was no choice."""
        ...

    def complete(self) -> bool:
        """Whether nothing may follow."""
        ...


class Chosen(NamedTuple):
    """How likely a token was that was written, and the likeliest ones in its place."""

    token: TokenLogprob
    top: list[TokenLogprob]


@dataclass(frozen=True, slots=True)
class Piece:
    """What has become ready to be shown. `finish`: it was the last; `error`: so it was, and the
    stream failed."""

    text: str = ""
    chosen: tuple[Chosen, ...] = ()
    finish: Finish | None = None
    error: Exception | None = None


@dataclass(slots=True, eq=False)
class Sequence:
    """One stream. `tokens`: those of the prompt to begin with; `ends`: tokens that end an answer;
    `top_logprobs`: how many likeliest tokens are told, None: no logprobs at all."""

    tokens: list[int]
    most: int
    """Tokens it may write."""
    text: Text
    ends: frozenset[int]
    sampling: Sampling
    seed: int | None = None
    stops: Row[str] = ()
    top_logprobs: int | None = None
    grammar: Grammar | None = None
    tenant: str = ""
    prompt: int = field(init=False)
    computed: int = 0
    reused: int = 0
    left: bool = False
    """Nobody waits for it any more. Set by anybody at any time."""
    finish: Finish | None = None
    failed: bool = False
    _watch: StopStrings = field(init=False)
    _random: random.Random = field(init=False)
    _chosen: list[tuple[int, Chosen]] = field(default_factory=list)
    """Not told yet, each with the characters of text before it."""
    _said: int = 0
    """Characters of text in all."""
    _shown: int = 0
    """Those of them that were shown."""
    _stopped: bool = False
    """By a stop string, which is not shown, and so are not its tokens."""

    def __post_init__(self) -> None:
        self.prompt = len(self.tokens)
        self._watch = StopStrings(self.stops)
        self._random = random.Random(self.seed)

    @property
    def ended(self) -> bool:
        """Whether nothing more is wanted of it."""
        return self.left or self.failed or self.finish is not None

    @property
    def written(self) -> int:
        """Tokens of the answer, the one that ends it included."""
        return len(self.tokens) - self.prompt

    def advance(self, logits: Logits) -> Piece:
        """Choose the next token. Raises an AskError where the grammar cannot go on."""
        allowed = logits
        if self.grammar is not None:
            allowed = np.where(self.grammar.allowed(), logits, np.float32(-np.inf))
        token = choose(allowed, self.sampling, self._random.random())
        if self.top_logprobs is not None and token not in self.ends:
            told = Chosen(*logprobs(logits, token, self.top_logprobs))
            self._chosen.append((self._said, told))
        shown = self._take(token)
        if self.grammar is not None and self.finish is None:
            shown += self._follow(self.grammar, token)
        return self._piece(shown)

    def fail(self, error: Exception) -> Piece:
        """End it with `error`."""
        self.failed = True
        return Piece(error=error)

    def _follow(self, grammar: Grammar, token: int) -> str:
        """Tell the grammar; take what it forces without asking the model, which would have no
        choice (where its logprobs are wanted it is asked all the same)."""
        grammar.take(token)
        shown = ""
        if self.top_logprobs is None:
            for each in grammar.forced():
                shown += self._take(each)
                if self.finish is not None:
                    return shown
                grammar.take(each)
        if grammar.complete():
            self.finish = "stop"
        return shown

    def _take(self, token: int) -> str:
        """One more token: what may be shown with it."""
        self.tokens.append(token)
        if token in self.ends:
            self.finish = "stop"
            return self._watch.rest()
        text = self.text.step(token)
        self._said += len(text)
        shown, self._stopped = self._watch.feed(text)
        if self._stopped:
            self.finish = "stop"
        elif self.written >= self.most:
            self.finish = "length"
            shown += self._watch.rest()
        return shown

    def _piece(self, shown: str) -> Piece:
        if not shown and self.finish is None:
            return Piece()
        self._shown += len(shown)
        whole = self.finish is not None and not self._stopped
        told = [each for at, each in self._chosen if whole or at < self._shown]
        self._chosen = self._chosen[len(told) :]
        return Piece(shown, tuple(told), self.finish)
