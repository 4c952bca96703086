"""Where a Redis is: its URL, understood before anything connects.

Invariant: the password is never in what is shown, nor in an error; a URL is understood whole or
refused, so that a misspelt option is no silent one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

SCHEMES = ("redis", "rediss", "unix")
"""Plain, over TLS, and a socket of this machine."""
PORT = 6379
"""Redis's own."""
_USE = "use redis://[USER@]HOST[:PORT][/DATABASE], rediss:// for TLS, or unix:///SOCKET[?db=N]"


def is_redis(text: str) -> bool:
    """Whether `text` is the URL of a Redis, by its scheme."""
    return text.partition("://")[0].lower() in SCHEMES and "://" in text


@dataclass(frozen=True, slots=True)
class RedisPlace:
    """A database of a Redis. `socket`: a path, "" where it is reached by `host` and `port`."""

    host: str = ""
    port: int = PORT
    socket: str = ""
    database: int = 0
    tls: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, url: str) -> RedisPlace:
        """The place that `url` names. Raises ValueError, in words that hold nothing of the URL."""
        try:
            parts = urlsplit(url)
            user = unquote(parts.username) if parts.username else None
            password = unquote(parts.password) if parts.password else None
            if parts.scheme == "unix":
                path = unquote(parts.path)
                known = path and not parts.hostname and not parts.fragment
                if known:
                    number = _number(parts.query.removeprefix("db=") if parts.query else "")
                    return cls(socket=path, database=number, user=user, password=password)
            elif parts.scheme in SCHEMES and parts.hostname and not _odd(parts):
                return cls(
                    parts.hostname,
                    PORT if parts.port is None else parts.port,
                    database=_number(parts.path.removeprefix("/")),
                    tls=parts.scheme == "rediss",
                    user=user,
                    password=password,
                )
        except ValueError:
            # Its words may repeat a part of the URL, the password even.
            raise ValueError(f"that is no URL of a Redis: {_USE}") from None
        raise ValueError(f"that is no URL of a Redis: {_USE}")

    def __str__(self) -> str:
        """Its URL without the password."""
        user = f"{quote(self.user, safe='')}@" if self.user else ""
        if self.socket:
            return f"unix://{user}{quote(self.socket)}" + (
                f"?db={self.database}" * bool(self.database)
            )
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = "rediss" if self.tls else "redis"
        return f"{scheme}://{user}{host}:{self.port}/{self.database}"

    def options(self) -> dict[str, Any]:
        """What a client of `redis` or `redis.asyncio` is made with."""
        where: dict[str, Any] = {"host": self.host, "port": self.port, "ssl": self.tls}
        if self.socket:
            where = {"unix_socket_path": self.socket}
        return where | {"db": self.database, "username": self.user, "password": self.password}


def _odd(parts: SplitResult) -> bool:
    return bool(parts.query or parts.fragment)


def _number(text: str) -> int:
    if text and not text.isdecimal():
        raise ValueError
    return int(text or 0)
