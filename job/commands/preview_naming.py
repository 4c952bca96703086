"""What naming the themes will take: as in earlier runs, or as the number of issues lets expect.
Pure.

Invariant: the calls that are foreseen are no more than naming ever makes in its first round.
"""

from __future__ import annotations

import math

from job.commands.preview_asking import Call
from job.estimates.around import NamingTaken
from job.estimates.call_seconds import GUESS_SECONDS, GUESS_SECONDS_A_TOKEN
from job.instructions import Language
from job.naming.code_names import EXAMPLES
from job.naming.naming import FEWEST, FIRST_ROUND, MOST_NAMED

SYSTEM_TOKENS = 300
"""Of the instructions, in both languages about."""
THEME_TOKENS = 20
ISSUE_TOKENS: dict[Language, int] = {"en": 37, "zh": 51}
"""Of a theme, and of each of the issues by which it is shown: a frame of 14 tokens, an event, a
cause and a suggestion as long as those of `preview_answers.py`."""
NAME_TOKENS: dict[Language, int] = {"en": 100, "zh": 120}
"""Of a name: title, summary, cause, action and a reason, each a sentence; those of test runs took
90 to 200."""


def naming_calls(
    issues: int, language: Language, earlier: NamingTaken | None, model: str = ""
) -> list[Call]:
    """The calls by which `model` names the themes of so many issues. Without an earlier run there
    are about as many themes as the root of the issues: a day has few causes, and each is told many
    times."""
    if earlier is not None:
        count = max(1, round(earlier.calls))
        tokens_in, tokens_out = earlier.tokens_in / count, earlier.tokens_out / count
        return [_call(tokens_in, tokens_out, model)] * count if issues and earlier.calls else []
    themes = min(MOST_NAMED, round(math.sqrt(issues)))
    if not themes:
        return []
    count = math.ceil(themes / max(FEWEST, math.ceil(themes / FIRST_ROUND)))
    each, shown = themes / count, min(EXAMPLES, issues / themes)
    theme = THEME_TOKENS + shown * ISSUE_TOKENS[language]
    return [_call(SYSTEM_TOKENS + each * theme, each * NAME_TOKENS[language], model)] * count


def _call(tokens_in: float, tokens_out: float, model: str) -> Call:
    seconds = GUESS_SECONDS + GUESS_SECONDS_A_TOKEN * (tokens_in + tokens_out)
    reserved = round(tokens_in + 2 * tokens_out)
    return Call("fast", reserved, tokens_in, tokens_out, seconds, model)
