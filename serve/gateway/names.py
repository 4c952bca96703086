"""One list of names over all providers: a name -> who is asked, first to last. Pure.

Invariant: what a name stands for is settled before the first request, except for `auto`, which the
text decides; a name that could mean two things means the same one always: a name of your own goes
before `provider/model`, that before a bare model; of a bare model that several have the cluster's
own is asked, which somebody gave that name, else the first provider's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from serve.ask.errors import Misconfigured
from serve.ask.route import Tier, route_chat
from serve.ask.settings import Provider
from serve.gateway.contract import Target
from serve.gateway.errors import BadRequest, UnknownModel
from serve.gateway.settings import AutoSettings, GatewaySettings
from serve.models.settings import LOCAL, served

AUTO = "auto"
OWN = "fupan"
"""Who owns a name of your own, in the list of models."""
SHOWN_CHARACTERS = 100
"""Of a name that nobody has, in the error about it."""

Targets = tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A name in the list of models. `owned_by`: the provider's name in fupan.yaml, or OWN."""

    id: str
    owned_by: str


class Names:
    """Every name that a client may ask for."""

    def __init__(self, settings: GatewaySettings) -> None:
        """Raises Misconfigured for a name of `serve.names` or `serve.auto` that leads nowhere."""
        self._targets: dict[str, Targets] = {}
        self._owners: dict[str, str] = {}
        # The first to claim a name has it, so they come in the order of the invariant.
        full = [
            *(
                Target(provider, model)
                for provider, each in settings.providers.items()
                for model in each.models
            ),
            *(Target(LOCAL, name) for name, _, _ in served(settings.models)),
        ]
        known = {str(target): target for target in full}
        for name, own in settings.serve.names.items():
            where = f"serve.names.{name}.use"
            if name == AUTO:
                raise Misconfigured(f"serve.names has {AUTO!r}: set it up in serve.auto")
            targets = tuple(_known(each, known, where) for each in own.use)
            self._claim(name, tuple(dict.fromkeys(targets)), OWN)
        for target in full:
            self._claim(str(target), (target,), target.provider)
        for target in sorted(full, key=lambda each: each.provider != LOCAL):
            self._claim(target.model, (target,), target.provider)
        self._auto = self._tiers(settings.serve.auto or _auto_of(settings.providers))
        if self._auto is not None:
            self._targets.pop(AUTO, None)
            self._owners[AUTO] = OWN

    def entries(self) -> list[Entry]:
        """All of them, each once."""
        return [Entry(name, owner) for name, owner in self._owners.items()]

    def resolve(self, name: str, body: Mapping[str, Any]) -> Targets:
        """Who is asked for `name`: the first, then who takes over while that one fails.

        Raises UnknownModel; BadRequest where `auto` is asked to route what is no chat.
        """
        targets = self._targets.get(name)
        if targets is not None:
            return targets
        if name == AUTO and self._auto is not None:
            return self._auto[_tier(body)]
        if name == AUTO:
            raise UnknownModel(
                "The gateway has no models to choose among: fupan.yaml needs serve.auto, or tiers "
                "of a provider.",
                param="model",
            )
        raise UnknownModel(
            f"The model {name[:SHOWN_CHARACTERS]!r} does not exist here: GET /v1/models lists "
            "those that do.",
            param="model",
        )

    def _claim(self, name: str, targets: Targets, owner: str) -> None:
        if name not in self._targets:
            self._targets[name] = targets
            self._owners[name] = owner

    def _tiers(self, auto: AutoSettings | None) -> dict[Tier, Targets] | None:
        if auto is None:
            return None
        named: dict[Tier, str] = {
            "fast": auto.fast,
            "powerful": auto.powerful,
            "balanced": auto.balanced or auto.powerful,
        }
        return {tier: self._of_tier(tier, name) for tier, name in named.items()}

    def _of_tier(self, tier: Tier, name: str) -> Targets:
        try:
            return self._targets[name]
        except KeyError:
            raise Misconfigured(
                f"serve.auto.{tier} is {name!r}, which is neither provider/model of a provider "
                "above nor a name in serve.names"
            ) from None


def _auto_of(providers: Mapping[str, Provider]) -> AutoSettings | None:
    """The tiers of the first provider that has any."""
    for name, provider in providers.items():
        if (tiers := provider.tiers) is not None:
            return AutoSettings(
                fast=f"{name}/{tiers.fast}",
                balanced=f"{name}/{tiers.balanced or tiers.powerful}",
                powerful=f"{name}/{tiers.powerful}",
            )
    return None


def _known(name: str, known: Mapping[str, Target], where: str) -> Target:
    try:
        return known[name]
    except KeyError:
        raise Misconfigured(
            f"{where} has {name!r}, which is not provider/model of a provider above: "
            f"{', '.join(known)}"
        ) from None


def _tier(body: Mapping[str, Any]) -> Tier:
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise BadRequest(f"model {AUTO!r} chooses by the messages of a chat", param="model")
    return route_chat([each for each in messages if isinstance(each, Mapping)]).tier
