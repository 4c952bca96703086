"""Every knob of the simulated provider.

Invariant: all durations and rates here are in simulated time; `time_scale` alone says how many
simulated seconds pass in a real one, so a setting means the same at every scale.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from serve.simulated_bill import Price
from serve.simulated_truth import Truth

TransportFault = Literal["rate_limit", "server_error", "reset", "hang"]
"""Faults that can strike any request: a 429, a 5xx, a connection that ends, no answer at all."""
TextFault = Literal["cut", "malformed"]
"""Faults in the text of an answer: cut short (`finish_reason: length`), or JSON that is broken."""
RecordFault = Literal["missing", "doubled", "invented"]
"""Faults in the ids of an answer about records."""
FaultKind = Literal[TransportFault, TextFault, RecordFault]

TRANSPORT_FAULTS: frozenset[FaultKind] = frozenset(get_args(TransportFault))
TEXT_FAULTS: frozenset[FaultKind] = frozenset(get_args(TextFault))
RECORD_FAULTS: frozenset[FaultKind] = frozenset(get_args(RecordFault))

Feature = Literal[
    "json_schema", "json_object", "max_tokens", "max_completion_tokens", "temperature", "stream"
]
"""What a provider may refuse by name whatever the content."""

Window = tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(gt=0)]]
"""Start (included) and end (excluded), seconds from the first request."""

LATENCY: Points = (
    (100, 0.8),
    (1000, 1.2),
    (2000, 1.8),
    (4000, 3.1),
    (6000, 4.5),
    (8000, 6.2),
)
"""Input tokens -> seconds: the measured curve of the provider that fupan was designed against."""


Points = tuple[tuple[float, float], ...]
"""(input tokens, value), by rising number of tokens; linear between them."""


class Weakness(BaseModel):
    """What a model is too weak for: records that hold one of `phrases`; `*` is all."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    phrases: tuple[Annotated[str, Field(min_length=1)], ...] = Field(min_length=1)


class Settings(BaseModel):
    """How the simulated provider behaves; the defaults are a provider without limits or faults.

    `latency`: points (input tokens, seconds), linear between them; `output_rate`: output tokens a
    second on top, None for none. `rpm`, `tpm`: requests and tokens a minute, None for no limit;
    the bursts are what may be spent at once, by default a whole minute's worth. `retry_after`:
    whether a 429 says when to come back. `quota_after`: admitted requests until the account is
    empty for good;
    `quota_windows`, `outages`: seconds from the first request. `poison`: phrases of a user message
    that make the whole request refused. `fault_shares`: probability of each kind of fault;
    `fault_schedule`: request number -> fault, goes first (see `serve.simulated_faults`).
    `fault_retry_after`, `hang_seconds`: seconds. `log`: JSON lines, one per request.
    `prices`: of every model, or of none; `bill_lost`: whether answers that were written and did
    not arrive whole are billed too. `fades_from`: position in a request, from 1, from which on a
    `fade_share` of the records is answered as `fades_as` says. `row_faults`: points (input tokens,
    probability) of each row to be left out. `weak_models`: leave the cause and suggestion of some
    problems empty. `forgets_rules`: how many of the rules to be shortened lose something.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    models: tuple[str, ...] = Field(default=("simulated",), min_length=1)
    api_key: SecretStr | None = None
    context: int = Field(default=8192, gt=0)
    unsupported: frozenset[Feature] = frozenset()
    truth: Truth = Truth()
    log: Path | None = None

    time_scale: float = Field(default=1.0, gt=0)
    latency: Points = Field(default=LATENCY, min_length=1)
    output_rate: float | None = Field(default=None, gt=0)

    rpm: int | None = Field(default=None, gt=0)
    request_burst: int | None = Field(default=None, gt=0)
    tpm: int | None = Field(default=None, gt=0)
    token_burst: int | None = Field(default=None, gt=0)
    retry_after: bool = True

    quota_after: int | None = Field(default=None, ge=0)
    quota_windows: tuple[Window, ...] = ()
    outages: tuple[Window, ...] = ()
    outage_as: Literal["503", "reset"] = "503"

    poison: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    poison_as: Literal["400", "refusal"] = "400"

    fault_shares: dict[FaultKind, Annotated[float, Field(ge=0, le=1)]] = {}
    fault_schedule: dict[Annotated[int, Field(ge=1)], FaultKind] = {}
    fault_seed: int = 0
    fault_retry_after: float = Field(default=2.0, ge=0)
    hang_seconds: float = Field(default=600.0, gt=0)

    prices: dict[str, Price] = {}
    bill_lost: bool = False

    fades_from: int | None = Field(default=None, ge=1)
    fades_as: Literal["wrong", "normal", "missing"] = "wrong"
    fade_share: float = Field(default=1.0, ge=0, le=1)
    row_faults: Points = ()
    weak_models: dict[str, Weakness] = {}
    forgets_rules: int = Field(default=0, ge=0)

    @field_validator("latency", "row_faults")
    @classmethod
    def _points_rise(cls, points: Points) -> object:
        tokens = [point[0] for point in points]
        if any(left >= right for left, right in pairwise(tokens)):
            raise ValueError("points must be given by rising number of input tokens")
        if any(value < 0 for _, value in points):
            raise ValueError("seconds and probabilities must not be negative")
        return points

    @field_validator("quota_windows", "outages")
    @classmethod
    def _windows_have_length(cls, windows: tuple[Window, ...]) -> object:
        if any(start >= end for start, end in windows):
            raise ValueError("a window must end after it starts")
        return windows

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if sum(self.fault_shares.values()) > 1 + 1e-9:
            raise ValueError("fault_shares add up to more than 1")
        if self.prices and set(self.prices) != set(self.models):
            raise ValueError(f"prices must name each of the models: {', '.join(self.models)}")
        if unknown := set(self.weak_models) - set(self.models):
            raise ValueError(f"weak_models names models not served: {', '.join(sorted(unknown))}")
        if self.request_burst is not None and self.rpm is None:
            raise ValueError("request_burst needs rpm")
        if self.token_burst is not None and self.tpm is None:
            raise ValueError("token_burst needs tpm")
        return self
