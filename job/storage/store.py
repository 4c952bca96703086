"""The file systems behind places: this machine's own, and object storage by its URI.

Invariant: credentials come from the environment alone; a URI that holds one is refused, so that
none reaches a file, a log or a message. What a store answers is told in words that say what to do.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from urllib.parse import parse_qsl, unquote

from pyarrow import fs

from job.errors import UsageError
from serve.ask.uris import without_secrets

OPTIONS = ("region", "endpoint_override", "scheme")
"""What may follow the ? of a URI: where the store is, never who asks."""
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 30.0
"""Without a byte: the library's own 3 s are too short for a copy of a large object."""
ATTEMPTS = 6
"""At one request that the store is too busy for or that the network lost: some 15 s in all."""
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)/?(.*)", re.DOTALL)
_QUERY = re.compile(r"\?([A-Za-z_]+=[^?]*)\Z", re.DOTALL)
"""Only what looks like options is one: a ? elsewhere belongs to a glob."""


def is_uri(given: str) -> bool:
    """Whether `given` names something on a store, or by one: `file://` too."""
    return _URI.fullmatch(given) is not None


def split_uri(given: str) -> tuple[str, str]:
    """A URI as the store it is on (`s3://bucket?region=...`; "" for this machine) and the path
    there, unquoted. Raises UsageError for one that holds a secret or makes no sense."""
    options = _QUERY.search(given)
    found = _URI.fullmatch(given[: options.start()] if options else given)
    shown = without_secrets(given)
    if found is None:
        raise UsageError(f"{shown!r} is no URI: use scheme://bucket/path")
    scheme, host, path = found[1].lower(), found[2], found[3]
    if scheme == "file":
        if options or host not in ("", "localhost"):
            raise UsageError(f"{shown!r} names no file of this machine: use file:///folder/name")
        return "", "/" + unquote(path)
    if (":" in host or scheme == "s3") and "://***@" in shown:
        raise UsageError(
            f"{shown!r} holds credentials, which others could read there: set AWS_ACCESS_KEY_ID "
            "and AWS_SECRET_ACCESS_KEY (or what your store uses) in the environment instead"
        )
    if not host or any(letter.isspace() for letter in host) or (scheme == "s3" and ":" in host):
        raise UsageError(f"{shown!r} names no bucket: use {scheme}://bucket/path")
    pairs = sorted(parse_qsl(options[1], keep_blank_values=True)) if options else []
    for name, value in pairs:
        if name not in OPTIONS or "@" in value:
            raise UsageError(
                f"{shown!r}: the option {name} has no place in a URI (allowed: "
                f"{', '.join(OPTIONS)}); credentials belong into the environment"
            )
    query = "&".join(f"{name}={value}" for name, value in pairs)
    return f"{scheme}://{host}" + (f"?{query}" if query else ""), path.rstrip("/")


def file_system(store: str) -> tuple[fs.FileSystem, str]:
    """The file system of a store as `split_uri` names it, and where in it paths begin."""
    return _open(store, os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"))


@lru_cache(maxsize=64)
def _open(store: str, endpoint: str | None) -> tuple[fs.FileSystem, str]:
    if not store:
        return fs.LocalFileSystem(), ""
    address, _, query = store.partition("?")
    scheme, _, bucket = address.partition("://")
    if scheme != "s3":
        try:
            system, base = fs.FileSystem.from_uri(store)
            return system, base
        except (ValueError, NotImplementedError) as error:
            said = without_secrets(f"{address!r}: {error}")
            raise UsageError(f"cannot open {said}") from error
    options = dict(parse_qsl(query))
    endpoint = options.get("endpoint_override", endpoint)
    region = options.get("region") or os.environ.get(
        "AWS_REGION", os.environ.get("AWS_DEFAULT_REGION")
    )
    if region is None and endpoint is None:
        region = fs.resolve_s3_region(bucket)
    return fs.S3FileSystem(
        region=region,
        endpoint_override=endpoint,
        scheme=options.get("scheme"),
        connect_timeout=CONNECT_SECONDS,
        request_timeout=ANSWER_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        # A small object is one request, and none of it is there before.
        allow_delayed_open=True,
        background_writes=False,
    ), bucket


_AWS = re.compile(r"AWS Error ([A-Z_]+|UNKNOWN \(HTTP status \d+\)) during (\w+) operation: (.*)")
_BUCKET = re.compile(r"bucket '([^']*)'")
_KEY = re.compile(r"key '([^']*)'")
_REFUSED = frozenset(
    (
        "ACCESS_DENIED",
        "EXPIRED_TOKEN",
        "INCOMPLETE_SIGNATURE",
        "INVALID_ACCESS_KEY_ID",
        "INVALID_CLIENT_TOKEN_ID",
        "INVALID_SIGNATURE",
        "MISSING_AUTHENTICATION_TOKEN",
        "OPT_IN_REQUIRED",
        "REQUEST_EXPIRED",
        "SIGNATURE_DOES_NOT_MATCH",
        "UNRECOGNIZED_CLIENT",
        "UNKNOWN (HTTP status 401)",
        "UNKNOWN (HTTP status 403)",
    )
)
_BUSY = frozenset(
    (
        "INTERNAL_FAILURE",
        "REQUEST_TIMEOUT",
        "SERVICE_UNAVAILABLE",
        "SLOW_DOWN",
        "THROTTLING",
        "UNKNOWN (HTTP status 429)",
        "UNKNOWN (HTTP status 500)",
        "UNKNOWN (HTTP status 503)",
    )
)


def store_words(error: BaseException) -> str | None:
    """What an object store answered, where, and what to do; None for any other error."""
    found = _AWS.search(str(error)) if isinstance(error, OSError) else None
    if found is None:
        return None
    code, operation, said = found.groups()
    bucket, key = _BUCKET.search(str(error)), _KEY.search(str(error))
    where = f"s3://{bucket[1]}" if bucket else "the object store"
    there = f"{where}/{key[1]}" if bucket and key else where
    if code == "NO_SUCH_BUCKET":
        return f"there is no bucket {where}: make it, or check its name and AWS_ENDPOINT_URL"
    if code in _REFUSED:
        return (
            f"{there}: the store refuses {operation} ({_name(code)}): check AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, and what they may do there"
        )
    if code in _BUSY:
        return (
            f"{there}: the store is too busy or ails ({_name(code)}, {ATTEMPTS} tries): "
            "wait a little; the same command goes on from here"
        )
    if code == "NETWORK_CONNECTION":
        return (
            f"{there}: the store cannot be reached ({said.partition(';')[0]}): check the network "
            "and AWS_ENDPOINT_URL; the same command goes on from here"
        )
    return f"{there}: the store failed at {operation} ({_name(code)}): {said}"


def _name(code: str) -> str:
    """As the store spells it: AccessDenied."""
    return "".join(w.title() for w in code.split("_")) if code.isupper() else code.lower()
