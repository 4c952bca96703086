"""What the command line said, as one value.

Invariant: a flag says what the user said and nothing more; what it means, and whether it makes
sense, is decided in `config.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from job.pack.packing import Mode as PackMode


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line said; None: nothing."""

    inputs: tuple[str, ...] = ()
    out: str | None = None
    base_url: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    rpm: float | None = None
    tpm: float | None = None
    burst: int | None = None
    max_concurrency: int | None = None
    context: int | None = None
    pack_tokens: int | None = None
    max_spend: float | None = None
    deadline: str | None = None
    instructions: str | None = None
    compress_instructions: bool = False
    canary: float | None = None
    mode: PackMode | None = None
    provider: str | None = None
    language: Literal["auto", "zh", "en"] | None = None
    since: str | None = None
    until: str | None = None
    date: str | None = None
    timezone: str | None = None
    kind: tuple[str, ...] = ()
    sample: int | None = None
    max_failed: float | None = None
    answers: str | None = None
    baseline: str | None = None
    known: str | None = None
    fresh: bool = False
    overwrite: bool = False
    mask: bool = True
    config: str | None = None

    @classmethod
    def from_command(cls, values: dict[str, Any]) -> Flags:
        """From the parameters of a command, those that are no flags of a run left out."""
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        known["inputs"] = tuple(values["inputs"] or ())
        known["kind"] = tuple(values["kind"] or ())
        return cls(**known, mask=not values["no_mask"])
