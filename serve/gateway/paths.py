"""Where the files are that `serve` in fupan.yaml names. Pure.

Invariant: a path means the same in every process of the gateway, whatever folder that was started
in.
"""

from __future__ import annotations

from pathlib import Path

from serve.gateway.settings import GatewaySettings

PATHS = ("keys", "state")
"""The keys of `serve` that are paths."""


def absolute(settings: GatewaySettings, folder: Path | None) -> GatewaySettings:
    """`settings` with its relative paths seen from `folder`, which is absolute; None: there is no
    folder that they could be seen from. Raises ValueError then."""
    found = {}
    for name in PATHS:
        value = getattr(settings.serve, name)
        if value is None:
            continue
        path = Path(value).expanduser()
        if folder is None and not path.is_absolute():
            raise ValueError(
                f"serve.{name}: {value!r} is relative, and a replica may run in any folder: write "
                "the whole path, or name a fupan.yaml by `config`, beside which it is looked for"
            )
        found[name] = str(path if folder is None else folder / path)
    return settings.model_copy(update={"serve": settings.serve.model_copy(update=found)})
