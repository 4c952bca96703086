"""Who may ask: API keys, of which only a hash is ever kept.

A key is 256 random bits, so one round of SHA-256 is enough: a slow hash protects what people choose
and others can guess. A key that is asked with is hashed and its digest looked up; how long that
takes tells nothing of the keys that exist, since nobody can choose a digest bit by bit.

Invariant: no key is in a file, a record, a log or an error; a record whose hash is not in the file
any more may not ask from a second later on, without a restart.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import orjson
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from serve.ask.errors import Misconfigured
from serve.ask.once_yaml import DoubledKey, load_yaml
from serve.ask.settings import Positive
from serve.gateway.contract import Target
from serve.gateway.errors import NotAuthorized
from serve.gateway.settings import ServeSettings

PREFIX = "fp-"
RANDOM_BYTES = 32
DEFAULT_ENV = "FUPAN_KEYS"
"""Read where the settings name neither a file nor a variable, if it is set."""
LOOK_SECONDS = 1.0
"""Between two looks at the file."""
YOUNG_SECONDS = 2.0
"""A file that was written less than so long before it was read is read once more: a later write may
have left it with the same time and size."""

_PLAIN = re.compile(PREFIX + r"[A-Za-z0-9_-]{16,}")
_LOG = logging.getLogger(__name__)

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class KeyRecord(BaseModel):
    """What is known of a key. `name`: whose rates and money they are, also when the key is replaced
    by a new one; `tenant`: who shares caches with whom. None: no limit of that kind."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    tenant: Name
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    rpm: Positive | None = None
    """Requests per minute; after a rest a minute's worth at once."""
    tpm: Positive | None = None
    """Tokens per minute, input and output together."""
    max_spend: Annotated[Decimal | None, Field(gt=0, max_digits=18, decimal_places=6)] = None
    """Money per calendar month (UTC) in `currency`."""
    currency: Annotated[str, Field(min_length=1, max_length=8, pattern=r"^\S+$")] = "USD"
    models: Annotated[tuple[str, ...] | None, Field(min_length=1)] = None
    """Names that the key may ask for; None: all."""

    @property
    def limited(self) -> bool:
        """Whether somebody must keep count of it."""
        return self.rpm is not None or self.tpm is not None or self.max_spend is not None

    def allows(self, name: str, targets: Sequence[Target] = ()) -> bool:
        """Whether the key may ask for `name`, which leads to `targets`: it is named itself, or each
        target is, as `provider/model` or `model`."""
        if self.models is None or name in self.models:
            return True
        return bool(targets) and all(
            str(target) in self.models or target.model in self.models for target in targets
        )


def new_key() -> str:
    """A key that nobody had before."""
    return PREFIX + secrets.token_urlsafe(RANDOM_BYTES)


def digest_of(key: str) -> str:
    """What is kept of `key`."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def parse_keys(text: str, where: str) -> tuple[KeyRecord, ...]:
    """The records of a list in JSON or YAML. Raises Misconfigured, which names `where` and repeats
    no value."""
    try:
        data = _data(text)
    except ValueError as error:
        raise Misconfigured(f"{where} is neither JSON nor YAML: {error}") from None
    if data is None:
        data = []
    if not isinstance(data, list):
        raise Misconfigured(
            f"{where} must be a list of keys: `fupan keys new NAME` prints a line for it"
        )
    records = tuple(_record(item, f"{where}, key {n}") for n, item in enumerate(data, start=1))
    _all_different(records, where)
    return records


def _data(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return load_yaml(text)
    except yaml.YAMLError as error:
        # Not the error's own text, which repeats the line.
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark else "as a whole"
        what = "holds a field twice" if isinstance(error, DoubledKey) else "cannot be read"
        raise ValueError(f"{place} {what}") from None


_PLAINLY = {
    "missing": "is missing",
    "extra_forbidden": "is no field of a key; `fupan keys new NAME` prints a line as it must be",
}


def _record(item: object, where: str) -> KeyRecord:
    if _PLAIN.search(str(item)):
        raise Misconfigured(
            f"{where} holds an API key in plain text. A key that stood in a file is no secret any "
            "more: make a new one with `fupan keys new NAME` and write down the line it prints"
        )
    if not isinstance(item, Mapping):
        raise Misconfigured(f"{where} must hold at least name, tenant and sha256")
    try:
        return KeyRecord.model_validate(item)
    except ValidationError as error:
        said = "; ".join(
            f"{'.'.join(map(str, one['loc']))}: {_PLAINLY.get(one['type'], one['msg'])}"
            for one in error.errors(include_input=False, include_context=False, include_url=False)
        )
        raise Misconfigured(f"{where}: {said}") from None


def _all_different(records: Iterable[KeyRecord], where: str) -> None:
    names: set[str] = set()
    hashes: set[str] = set()
    for record in records:
        if record.name in names:
            raise Misconfigured(f"{where} names two keys {record.name!r}; names must differ")
        if record.sha256 in hashes:
            raise Misconfigured(f"{where}: the key of {record.name!r} is there twice")
        names.add(record.name)
        hashes.add(record.sha256)


class _Seen(NamedTuple):
    """A file as it was when it was read."""

    modified: int
    size: int
    inode: int

    @classmethod
    def of(cls, file: Path) -> _Seen:
        found = file.stat()
        return cls(found.st_mtime_ns, found.st_size, found.st_ino)


class KeyRing:
    """All keys that may ask. `open`: none are set up, and whoever reaches the port may ask."""

    def __init__(
        self,
        file: Path | None = None,
        fixed: tuple[KeyRecord, ...] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The keys in `file`, looked at again as it changes, and those `fixed`; None: there is no
        such source. Raises Misconfigured where they make no sense together."""
        self.open = file is None and fixed is None
        self._file = file
        self._fixed = fixed or ()
        self._clock = clock
        self._seen: _Seen | None = None
        self._settled = True
        self._problem: str | None = None
        self._by_digest: dict[str, KeyRecord] = {}
        self._look_at = clock() + LOOK_SECONDS
        self._read()

    @classmethod
    def load(cls, settings: ServeSettings, clock: Callable[[], float] = time.monotonic) -> KeyRing:
        """The keys that `settings` name. Raises Misconfigured where they cannot be read."""
        variable = settings.keys_env
        if variable is None and settings.keys is None and DEFAULT_ENV in os.environ:
            variable = DEFAULT_ENV
        fixed = None
        if variable is not None:
            text = os.environ.get(variable)
            if not text:
                raise Misconfigured(
                    f"the environment variable {variable} (keys_env) is "
                    f"{'not set' if text is None else 'empty'}. Set it to a list of keys, for "
                    "which `fupan keys new NAME` prints lines"
                )
            fixed = parse_keys(text, f"the environment variable {variable}")
        return cls(None if settings.keys is None else Path(settings.keys), fixed, clock)

    @property
    def problem(self) -> str | None:
        """What is wrong with the file as it is now, while the keys of the last good one hold."""
        self._look_where_due()
        return self._problem

    def __len__(self) -> int:
        return len(self._by_digest)

    def record(self, authorization: str | None) -> KeyRecord | None:
        """Whose the key in the header `Authorization` is; None where no keys are set up. Raises
        NotAuthorized."""
        if self.open:
            return None
        self._look_where_due()
        scheme, _, key = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not key:
            raise NotAuthorized(
                "this gateway wants an API key: send it as `Authorization: Bearer KEY`"
            )
        found = self._by_digest.get(digest_of(key.strip()))
        if found is None:
            raise NotAuthorized("this API key is not known here, or not any more")
        return found

    def _look_where_due(self) -> None:
        """Read the file again if it changed; keep what was good in it where it is bad now."""
        if self._file is None or self._clock() < self._look_at:
            return
        self._look_at = self._clock() + LOOK_SECONDS
        try:
            self._read()
        except Misconfigured as error:
            if error.message != self._problem:
                _LOG.error("the API keys stay as they were: %s", error.message)
            self._problem = error.message

    def _read(self) -> None:
        """Take over what the file holds, unless it is as it was when it was read last."""
        if self._file is None:
            self._use(self._fixed)
            return
        try:
            seen = _Seen.of(self._file)
            if seen == self._seen and self._settled:
                return
            self._seen, self._settled = seen, time.time() - seen.modified / 1e9 > YOUNG_SECONDS
            text = self._file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise Misconfigured(f"{self._file} (serve.keys) is not UTF-8") from None
        except OSError as error:
            self._seen = None
            raise Misconfigured(
                f"cannot read {self._file} (serve.keys): {error.strerror}"
            ) from error
        records = (*self._fixed, *parse_keys(text, str(self._file)))
        _all_different(records, str(self._file))
        self._use(records)
        self._problem = None

    def _use(self, records: Iterable[KeyRecord]) -> None:
        self._by_digest = {record.sha256: record for record in records}
