"""What goes wrong in generation beyond the errors of asking (`serve/ask/errors.py`).

Invariant: a refusal says what was asked for, names the parameter, and is worth reading.
"""

from __future__ import annotations

from serve.ask.errors import ContextOverflow, Refused, Unavailable


class GenerationModelError(Exception):
    """The model cannot be loaded: says which one, why, and what to do."""


class StepTooLarge(Exception):
    """A step did not fit into the device's memory. Nothing of it counts."""


def broke(error: Exception) -> Unavailable:
    """What every client of a model gets that will not answer any more."""
    return Unavailable(f"the model broke: {error}", 500)


def refused(said: str, param: str | None = None, code: str | None = None) -> Refused:
    """A 400 in OpenAI's shape: `said` is for the client, `param` the field it is about."""
    error = Refused(said, 400)
    error.said, error.param, error.code = said, param, code
    return error


def overflow(context: int, prompt: int, output: int | None) -> ContextOverflow:
    """The 400 for what does not fit into `context` tokens. `output`: tokens asked for, if said."""
    asked = f", and {output} more are asked for" if output is not None else ""
    said = (
        f"This model's context is {context} tokens. The messages have {prompt} or more{asked}: "
        "that does not fit. Shorten the messages" + (" or max_tokens." if output else ".")
    )
    error = ContextOverflow(said, 400)
    error.said, error.param, error.code = said, "messages", "context_length_exceeded"
    return error
