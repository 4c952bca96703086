"""What naming the themes will take: as in earlier runs, or as the number of issues lets expect.
Pure.

Invariant: the calls that are foreseen are no more than naming ever makes in its first round.
"""

from __future__ import annotations

import math

from job.commands.preview_asking import Call
from job.estimates_around import NamingTaken
from job.naming.naming import FEWEST, FIRST_ROUND, MOST_NAMED

SYSTEM_TOKENS = 300
"""Of the instructions, in both languages about."""
THEME_TOKENS = 260
"""Of a theme that is shown with five issues, each an event, a cause and a suggestion."""
NAME_TOKENS = 120
"""Of its name: title, summary, cause, action and a reason, each one sentence; those of test runs
took 90 to 200."""
SECONDS_A_TOKEN = 0.65e-3
LEAST_SECONDS = 0.7
"""Of a call, as in `call_seconds.py`."""


def naming_calls(issues: int, earlier: NamingTaken | None) -> list[Call]:
    """The calls that name the themes of so many issues. Without an earlier run there are about as
    many themes as the root of the issues: a day has few causes, and each is told many times."""
    if earlier is not None:
        count = max(1, round(earlier.calls))
        tokens_in, tokens_out = earlier.tokens_in / count, earlier.tokens_out / count
        return [_call(tokens_in, tokens_out)] * count if issues and earlier.calls else []
    themes = min(MOST_NAMED, math.ceil(math.sqrt(issues)))
    count = math.ceil(themes / max(FEWEST, math.ceil(themes / FIRST_ROUND)))
    each = themes / count if count else 0.0
    return [_call(SYSTEM_TOKENS + each * THEME_TOKENS, each * NAME_TOKENS)] * count


def _call(tokens_in: float, tokens_out: float) -> Call:
    seconds = LEAST_SECONDS + SECONDS_A_TOKEN * tokens_in
    return Call("fast", round(tokens_in + 2 * tokens_out), tokens_in, tokens_out, seconds)
