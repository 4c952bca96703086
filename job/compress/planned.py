"""What a plan says of the instructions of a run, without asking anybody.

Invariant: what is kept of an earlier run is what the run will use; what is not known is said to be
not known, and nothing is taken for recalled that other instructions were the question to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from job.compress.asking import Room, judge_requests, shorten_requests
from job.compress.outcome import LONG_CHARACTERS, Outcome, decode, kept_name, saving
from job.compress.rules import split
from job.config import Settings
from job.mask.masking import Masker
from job.report.instructions import compression_words
from job.report.words import Words
from serve.ask import tokens
from serve.ask.ask import CallCounts
from serve.ask.settings import Provider


class Learned(Protocol):
    """The part of the store of answers that holds what runs have learned."""

    def learned(self, name: str, since: float | None = None) -> bytes | None:
        """See `serve.ask.answers.Answers.learned`."""
        ...


@dataclass(frozen=True, slots=True)
class Planned:
    """`text`: what the model will be told, as far as that is known. `pending`: the run will have it
    shortened first, so no answer to it is known. `words`: for the user."""

    text: str
    pending: bool
    words: str


def plan_instructions(
    settings: Settings,
    provider: Provider,
    store: Learned | None,
    masker: Masker,
    since: float | None = None,
) -> Planned | None:
    """The user's own instructions in the run to come; None without any. `store`: None where the
    run asks anew; `since`: what was kept before it is not used (seconds since the epoch)."""
    own = settings.own_instructions
    if not own:
        return None
    size = f"{tokens.count(own):,} tokens a call"
    if not settings.compress_instructions:
        return Planned(own, False, size)
    outcome: Outcome | None = Outcome(own, "short")
    if len(own) > LONG_CHARACTERS:
        name = kept_name(own, settings.tiers[-1])
        outcome = decode(store.learned(name, since), own) if store else None
    if outcome is None:
        return Planned(own, True, f"{size} as written; {_to_come(own, provider)}")
    if outcome.reason is None:
        after = tokens.count(outcome.text)
        return Planned(
            outcome.text, False, f"{after:,} tokens a call, by an earlier run, not {size}"
        )
    said = compression_words(saving(own, outcome, 0, CallCounts(), masker), Words("en"))
    return Planned(own, False, f"{size}; made shorter: {said}")


def _to_come(own: str, provider: Provider) -> str:
    room = Room(provider.context, provider.max_output)
    rules = {str(n): p.line for n, p in enumerate(split(own)) if p.rule}
    pairs = {name: (rule, rule) for name, rule in rules.items()}
    requests = [*shorten_requests(rules, {}, "en", room), *judge_requests(pairs, "en", room)]
    most = sum(request.estimate_in + request.max_output for request, _ in requests)
    return (
        f"to be made shorter first, in about {len(requests)} calls of {most:,} tokens in all, "
        "which are not counted here"
    )
