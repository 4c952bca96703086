"""Settings of a provider: where it is, whose key, what it allows, what it costs.

Invariant: a settings value never holds a key. It holds the name of the environment variable, and
`api_key` reads it where the request is made, on that machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from decimal import Decimal
from ipaddress import ip_address
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from serve.ask.contract import Model
from serve.ask.errors import Misconfigured
from serve.ask.limiter import Limits
from serve.ask.uris import without_secrets

DEFAULT_KEY_ENV = "LLM_API_KEY"
"""Read when no variable is named. Not a well-known vendor's variable: a key must never be sent to
a URL that its owner did not name it for."""


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LimitSettings(_Strict):
    """What the provider allows this key; None: not known, found out by trying."""

    rpm: Positive | None = None
    """Requests per minute."""
    tpm: Positive | None = None
    """Tokens per minute, input and output together."""
    burst: Annotated[int, Field(gt=0)] | None = None
    """Requests that may be sent at once after a rest; default: `rpm`."""
    max_concurrency: Annotated[int, Field(gt=0)] = 20
    """Requests in flight at most."""
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The part of the limits that is ours, below 1 when others use the key too."""

    def to_limits(self) -> Limits:
        """The same as the limiter's own value."""
        return Limits(**self.model_dump())


Price = Annotated[Decimal, Field(ge=0, decimal_places=6)]
"""Six decimals a million tokens: what a token costs is exact to the twelfth."""


class Prices(_Strict):
    """Money per million tokens."""

    currency: Annotated[str, Field(min_length=1, max_length=8, pattern=r"^\S+$")] = "USD"
    input: Price = Decimal(0)
    cached: Price | None = None
    """Input the provider had cached; None: as `input`."""
    output: Price = Decimal(0)


OF_THE_REQUEST = ("model", "messages")
"""Fields of a request's body that no `extra_body` may set: of whom it is asked what."""

ANY_MODEL = "*"
"""Among the prices of a provider: those of the models that are not named."""


class Tiers(_Strict):
    """Which model takes what is easy, ordinary and hard (see `route.py`)."""

    fast: str
    balanced: str | None = None
    powerful: str

    @property
    def models(self) -> tuple[str, ...]:
        """From the cheapest to the most powerful. Two where what is ordinary goes to the powerful
        one, as it does unless `balanced` says otherwise."""
        balanced = self.balanced or self.powerful
        if balanced == self.powerful:
            return tuple(dict.fromkeys((self.fast, self.powerful)))
        return self.fast, balanced, self.powerful


class Provider(_Strict):
    """One OpenAI-compatible provider."""

    base_url: str
    key_env: str | None = None
    models: Annotated[tuple[str, ...], Field(min_length=1)]
    """The first is the default."""
    limits: LimitSettings = LimitSettings()
    context: Annotated[int, Field(gt=0)] = 8192
    """Tokens of input and output together that the model takes."""
    max_output: Annotated[int, Field(gt=0)] | None = None
    """Tokens of one answer at most; None: whatever the context leaves."""
    json_mode: Annotated[Literal["auto", "schema", "object", "words"], Field(alias="json")] = "auto"
    extra_body: dict[str, Any] = {}
    prices: dict[str, Prices] | None = None
    """By model; also written as one set of prices for all of them."""
    tiers: Tiers | None = None
    """For requests that leave the choice of the model open."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @field_validator("base_url")
    @classmethod
    def _http_url(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            wrong = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
        except ValueError:
            wrong = True
        if wrong:
            raise ValueError(f"{without_secrets(value)!r} is not an http(s) URL")
        if parts.username is not None or parts.password is not None:
            raise ValueError("the URL holds a user or password; keys belong in the environment")
        if "?" in value or "#" in value:
            raise ValueError(
                "the URL holds a query or a fragment; give it as https://host/v1, keys belong in "
                "the environment and other fields in extra_body"
            )
        return value.rstrip("/")

    @field_validator("key_env")
    @classmethod
    def _variable_name(cls, value: str | None) -> str | None:
        # Not repeated: who misunderstands the setting writes the key itself here.
        if value is not None and not _VARIABLE.fullmatch(value):
            raise ValueError("it takes the name of an environment variable, not the key itself")
        return value

    @field_validator("extra_body")
    @classmethod
    def _adds_only(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in OF_THE_REQUEST:
            if name in value:
                raise ValueError(f"extra_body sets {name}, which each request says itself")
        return value

    @field_validator("prices", mode="before")
    @classmethod
    def _by_model(cls, value: Any) -> Any:
        """One set of prices as those of any model."""
        if isinstance(value, Prices):
            return {ANY_MODEL: value}
        if not isinstance(value, Mapping) or any(isinstance(v, Mapping) for v in value.values()):
            return value
        return value if any(isinstance(v, Prices) for v in value.values()) else {ANY_MODEL: value}

    @field_validator("prices")
    @classmethod
    def _one_currency(cls, value: dict[str, Prices] | None) -> dict[str, Prices] | None:
        if value is not None and len({prices.currency for prices in value.values()}) != 1:
            raise ValueError("prices of one provider must be in one currency")
        return value

    @model_validator(mode="after")
    def _tiers_are_models(self) -> Self:
        for name in self.tiers.models if self.tiers else ():
            if name not in self.models:
                raise ValueError(f"tiers name {name!r}, which is not among models")
        return self

    def connect(self) -> Model:
        """Who answers for it, asked from this process. Raises Misconfigured where its environment
        lacks the key."""
        from serve.ask.attempt import Attempt  # loads an HTTP client, which settings need not

        return Attempt(self.base_url, api_key(self), self.limits.max_concurrency)

    @property
    def is_loopback(self) -> bool:
        """Whether the provider runs on this machine (then it may need no key)."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return host == "localhost" or ip_address(host).is_loopback
        except ValueError:
            return False


def key_variable(provider: Provider) -> str:
    """The environment variable that holds the provider's key."""
    return provider.key_env or DEFAULT_KEY_ENV


def api_key(provider: Provider) -> str | None:
    """The provider's key from this process's environment; None where none is needed.

    Raises Misconfigured when the variable is unset or empty and the provider was given one by
    name or is not on this machine, and for what cannot be sent as a key.
    """
    name = key_variable(provider)
    key = os.environ.get(name, "").strip()
    if key:
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise Misconfigured(
                f"the environment variable {name} holds no key: there are spaces, line breaks or "
                "characters outside ASCII in it. Copy the key again."
            )
        return key
    if provider.key_env is None and provider.is_loopback:
        return None
    raise Misconfigured(
        f"no key for {provider.base_url}: the environment variable {name} is not set. "
        "Set it, or name another one: key_env in fupan.yaml, --api-key-env of a run."
    )
