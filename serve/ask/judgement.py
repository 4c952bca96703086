"""What is asked about a record or a document that something happened in: its words and its schema.

Invariant: job and gateway ask for the same; whatever changes here changes the hash of the job's
instructions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

Outcome = Literal["problem", "normal", "positive", "unclear"]
Basis = Literal["stated", "inferred"]
Severity = Literal["info", "low", "medium", "high", "critical"]

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
BASES: tuple[Basis, ...] = get_args(Basis)
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""From the least to the most severe."""


def strict_object(properties: Mapping[str, Any]) -> dict[str, Any]:
    """A strict object: every property required, no others (as strict JSON modes demand)."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT_OR_NULL = {"type": ["string", "null"]}

JUDGEMENT: dict[str, Any] = {
    "outcome": {"type": "string", "enum": list(OUTCOMES)},
    "issues": {
        "type": "array",
        "items": strict_object(
            {
                "event": {"type": "string"},
                "cause": _TEXT_OR_NULL,
                "basis": {"type": "string", "enum": list(BASES)},
                "suggestion": _TEXT_OR_NULL,
                "severity": {"type": "string", "enum": list(SEVERITIES)},
                "quote": _TEXT_OR_NULL,
            }
        ),
    },
}
"""The properties of an answer about one text (DESIGN 4)."""
