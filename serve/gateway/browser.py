"""Whether a request comes from a page of somebody else, in a browser on this machine.

Where no API keys are set up, whoever reaches the port may ask, and every page in a browser of this
machine reaches it: by a request that a browser sends anywhere without a question (text/plain), or
by a name of its own that leads to 127.0.0.1 meanwhile (DNS rebinding). A browser says where the
page is from (`Origin`) and which name it used (`Host`); what is no browser is not bound to either.

Invariant: no page asks a gateway without keys but those of this machine and the gateway's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from serve.gateway.errors import Forbidden

CODE = "foreign_page"


def check_page(headers: Mapping[str, str], own: str) -> None:
    """Raise Forbidden for a request with `headers` (lower case) that a foreign page sends, or may
    have sent. `own`: the host at which the gateway listens."""
    said = _foreign(headers.get("host", ""), headers.get("origin"), own)
    if said is not None:
        raise Forbidden(said, code=CODE)


@lru_cache(maxsize=256)
def _foreign(host: str, origin: str | None, own: str) -> str | None:
    name = _name(f"//{host}")
    # A page that used an address used no name of its own.
    if host and not (_is_loopback(name) or _is_address(name) or name == own.lower()):
        return (
            "No API keys are set up here, so this gateway answers to its address, `localhost` and "
            "`serve.host` alone, and not to the Host that was sent. Set up keys (docs/keys.md)."
        )
    if origin is None or _is_loopback(_name(origin)) or _place(origin) == host.lower() != "":
        return None
    return (
        "No API keys are set up here, so pages of other sites (Origin) may not ask. Set up keys "
        "(docs/keys.md)."
    )


def _name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _place(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return ""


def _is_loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    return _is_address(name) and ip_address(name).is_loopback


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
