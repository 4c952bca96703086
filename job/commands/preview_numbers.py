"""What a run will take, each number with the range in which it is to be expected. Pure.

Invariant: a range holds its own expectation, and is wider where nothing was measured yet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from job.commands.preview_answers import GUESS_SPREAD, RUN_SPREAD, AnswerTokens
from job.commands.preview_asking import Asking, Call, Listed
from job.estimates.around import Around, default_seconds
from job.estimates.call_seconds import GUESS_SECONDS, GUESS_SECONDS_A_TOKEN
from job.estimates.kept import Earlier, Repeats
from job.estimates.moments import Moments
from serve.ask.limiter import Limits
from serve.ask.settings import Prices
from serve.ask.spend import expected_cost

DEVIATIONS = 2.0
"""Of a range: 19 of 20 runs lie within."""
TOKENIZER_SPREAD = 0.05
"""Of input tokens, where the provider's own count is not known yet: tokenizers differ so much."""
COUNT_SPREAD = 0.01
"""The same where it is: what is asked again differs from run to run."""
NAMING_SPREAD = 0.3
"""Of what naming takes: how many themes a day has is hard to foretell."""
GUESSED_SECONDS = (0.5, 2.0)
SEEN_SECONDS = (0.8, 1.25)
"""Times that a call may take what is expected, guessed or seen in earlier runs."""
GUESSED_AROUND = (0.6, 1.8)
SEEN_AROUND = (0.7, 1.4)
"""The same for what a run takes around its calls: it depends on the machine, and what else that
does."""
CALLS_SPREAD = 0.05
"""Of the calls, that may come on top of twice the repeated ones."""
GUESSED_REPEATS = Repeats(Moments(1.0, 0.05), Moments(1.0, 700.0), Moments(1.0, 100.0))
"""One call in twenty asks again what an answer lacked: on four sets it was 9, 0, 0 and 12 in a
hundred. It holds the instructions and a record or two."""
HANDED_ON = 0.1
"""Of what is asked of a model, that may have to be asked of the next, more powerful one as well:
before a run has seen how much it is, a range with several models reaches so much further up."""
PAUSE_SECONDS = 8.0
"""Between the last answer and the naming of themes: what they are grouped in."""


class Range(NamedTuple):
    """What is expected, and between what it is to be expected."""

    about: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Taken:
    """What a run will take. `asking` and `whole`: seconds with calls, and of the whole command;
    `by_model`: the tokens in and out of each model."""

    calls: int
    tokens_in: Range
    tokens_out: Range
    asking: Range
    whole: Range
    by_model: Mapping[str, tuple[Range, Range]]


def foresee(
    sent: Sequence[Call],
    naming: Sequence[Call],
    limits: Limits,
    answers: AnswerTokens,
    earlier: Earlier,
    around: Range,
    alone: Sequence[Call] = (),
    models: Sequence[str] = ("",),
    handed_on: Mapping[str, float] = MappingProxyType({}),
) -> Taken:
    """All numbers from the calls that are foreseen. `around`: seconds around the calls; `alone`:
    calls of a canary about single records; `models`: those of the run, the most powerful last;
    `handed_on`: see `Around.handed_on`."""
    again = max(1.0, earlier.again.mean) if earlier.again.n else 1.0
    repeats = _repeats(sent, again, earlier)
    spreads = _input_spread(earlier), _output_spread(answers, earlier)
    more = _tokens(repeats)
    by_model: dict[str, tuple[Range, Range]] = {}
    came, more = _handed_on(models, sent, again, more, handed_on)
    spare = (0.0, 0.0)
    for model in dict.fromkeys(models):
        own, single, named = (_tokens(_of(model, calls)) for calls in (sent, alone, naming))
        share = len(_of(model, sent)) / len(sent) if sent else 0.0
        asked = [
            again * tokens + share * extra + tried + come
            for tokens, extra, tried, come in zip(own, more, single, came[model], strict=True)
        ]
        tokens_in, tokens_out = map(_spread, asked, spreads, named, spare)
        by_model[model] = tokens_in, tokens_out
        part = handed_on.get(model, HANDED_ON)
        spare = part * (asked[0] + spare[0]), part * (asked[1] + spare[1])
    asking = _asking(
        *(alone, sent, repeats, naming, limits),
        *(again, earlier.runs > 0, len(by_model) > 1),
    )
    return Taken(
        math.ceil(len(sent) * again) + len(repeats) + len(alone) + len(naming),
        _together([tokens_in for tokens_in, _ in by_model.values()]),
        _together([tokens_out for _, tokens_out in by_model.values()]),
        asking,
        Range(*(calls + other for calls, other in zip(asking, around, strict=True))),
        by_model,
    )


def costs(taken: Taken, prices: Mapping[str, Prices]) -> Range:
    """What the tokens of all models cost, each at its own price."""
    ends = (
        sum(
            float(expected_cost(tokens_in[end], tokens_out[end], prices[model]))
            for model, (tokens_in, tokens_out) in taken.by_model.items()
        )
        for end in range(3)
    )
    return Range(*ends)


def around_of(earlier: Around, records: int, this_took: float) -> Range:
    """What a run takes around its calls: as earlier ones did, or as long as this plan took, which
    starts and reads as a run does."""
    seen = earlier.seconds(records)
    about = max(this_took, default_seconds(records) / 2) if seen is None else seen
    low, high = GUESSED_AROUND if seen is None else SEEN_AROUND
    return Range(about, about * low, about * high)


def _repeats(sent: Sequence[Call], again: float, earlier: Earlier) -> list[Call]:
    """The calls that only ask again, as many as in earlier runs, beside those that are foreseen."""
    repeats = earlier.repeats if earlier.repeats.number.n else GUESSED_REPEATS
    tokens_in, tokens_out = repeats.tokens_in.mean, repeats.tokens_out.mean
    seconds = GUESS_SECONDS + GUESS_SECONDS_A_TOKEN * (tokens_in + tokens_out)
    each = Call("retry", round(tokens_in + 2 * tokens_out), tokens_in, tokens_out, seconds)
    foreseen = sum(call.cls == "retry" for call in sent)
    wanted = (len(sent) - foreseen) * again * repeats.number.mean
    return [each] * max(0, round(wanted) - foreseen)


def _handed_on(
    models: Sequence[str],
    sent: Sequence[Call],
    again: float,
    more: tuple[float, float],
    parts: Mapping[str, float],
) -> tuple[dict[str, tuple[float, float]], tuple[float, float]]:
    """The tokens that come to each model from the one before, which are among those of the calls
    that only ask again (`more`), and what is left of these."""
    came = dict.fromkeys(models, (0.0, 0.0))
    for model, following in pairwise(came):
        part, own = parts.get(model, 0.0), _tokens(_of(model, sent))
        came_in, came_out = (
            min(part * (again * tokens + come), left)
            for tokens, come, left in zip(own, came[model], more, strict=True)
        )
        came[following] = came_in, came_out
        more = more[0] - came_in, more[1] - came_out
    return came, more


def _of(model: str, calls: Sequence[Call]) -> list[Call]:
    return [call for call in calls if call.model == model]


def _tokens(calls: Sequence[Call]) -> tuple[float, float]:
    return sum(call.tokens_in for call in calls), sum(call.tokens_out for call in calls)


def _spread(asked: float, spread: float, named: float, spare: float) -> Range:
    half = DEVIATIONS * math.hypot(asked * spread, named * NAMING_SPREAD)
    about = asked + named
    return Range(about, max(0.0, about - half), about + half + spare)


def _together(ranges: Sequence[Range]) -> Range:
    """Of all models: what one is off by, the others are as well."""
    return Range(*map(sum, zip(*ranges, strict=True)))


def _input_spread(earlier: Earlier) -> float:
    return COUNT_SPREAD if earlier.ratio.n else TOKENIZER_SPREAD


def _output_spread(answers: AnswerTokens, earlier: Earlier) -> float:
    """As a share of all answers: how far means are off, and by chance."""
    total = sum(answers.records.values())
    if not total:
        return 0.0
    guessed = answers.guessed / total
    runs = earlier.spread if earlier.runs > 2 and earlier.spread is not None else RUN_SPREAD
    means = guessed * GUESS_SPREAD + (1 - guessed) * max(runs, RUN_SPREAD / 2)
    expected = variance = 0.0
    for key, count in answers.records.items():
        known = earlier.answers.get(key, Moments())
        expected += count * known.mean
        variance += count * known.deviation**2 * (1 + count / max(known.n, 1.0))
    return math.hypot(means, math.sqrt(variance) / expected if expected else 0.0)


def _asking(
    alone: Sequence[Call],
    sent: Sequence[Call],
    repeats: Sequence[Call],
    naming: Sequence[Call],
    limits: Limits,
    again: float,
    seen: bool,
    several: bool,
) -> Range:
    """Seconds in which calls are in flight or wait for their permits, at the expected speed of the
    provider and at the limits of what it may be, with as few and as many calls as there may be."""

    def seconds(times: float, more: Sequence[Call]) -> float:
        asking = Asking(limits)
        asking.run(Listed(alone, times))
        tried = asking.now
        asking.run(Listed([*sent, *more], times))
        analysed = asking.now - tried
        asking.rest(PAUSE_SECONDS)
        named_from = asking.now
        asking.run(Listed(naming, times))
        return tried + analysed * again + asking.now - named_from

    low, high = SEEN_SECONDS if seen else GUESSED_SECONDS
    share = CALLS_SPREAD + (HANDED_ON if several else 0.0)
    spare = list(sent[: math.ceil(share * len(sent))])
    return Range(
        seconds(1.0, repeats), seconds(low, []), seconds(high, [*repeats, *repeats, *spare])
    )
