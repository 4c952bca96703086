"""What is private in a text becomes an alias.

Invariants: the same value has the same alias under the same key, in every run, and nobody without
the key can test a guess against it; masking a masked text changes nothing.
"""

from __future__ import annotations

import os
import re
import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping
from contextlib import suppress
from hashlib import blake2b
from operator import attrgetter, itemgetter
from pathlib import Path

from job.mask.credentials import credentials
from job.mask.field_names import fits, kind_of
from job.mask.papers import CONTACT_WORDS, PAPER_WORDS, accounts, contacts, hosts, papers
from job.mask.private import NUMBER_KINDS, Found, emails, ipv6, numbers
from job.mask.shadow import readable, shadow_of

DEFAULT: tuple[str, ...] = ("email", "phone", "id_card", "card", "secret", "ip")
"""The kinds that are masked unless told otherwise."""

ALIAS = re.compile(r"<([a-z][a-z0-9_]{0,31})-[0-9a-f]{10}>")
_OWN_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_KEY_BYTES = 32
_ROUNDS = 20
"""Of masking a text. Then what is found is taken with all up to the next blank: where each value
only shows the one behind it, there would be a round for each."""
_UP_TO_BLANK = re.compile(r"\S*")
_LONGEST_NAME = 100
"""Of a field: names are remembered, and its last word says what it holds."""
_SHORT = 48
_SHORT_KEPT = 4096
"""Texts of so many characters are users, hosts and services, which come again and again; so many
of them are remembered."""


class Masker:
    """Replaces private values by keyed aliases such as `<email-7c1d2a9e10>`.

    `key`: at most 64 bytes, see `load_key`. `kinds`: which of `DEFAULT` to mask. `own`: further
    kinds, a name (lower-case letters, digits, `_`) -> a regular expression whose whole match is
    private. `enabled=False`: nothing is masked. Raises ValueError for an unknown kind, a bad name
    and a bad expression.
    """

    def __init__(
        self,
        key: bytes,
        kinds: Collection[str] = DEFAULT,
        own: Mapping[str, str] | None = None,
        enabled: bool = True,
    ) -> None:
        unknown = sorted(set(kinds) - set(DEFAULT))
        if unknown:
            raise ValueError(
                f"cannot mask {', '.join(unknown)}: known kinds are {', '.join(DEFAULT)}"
            )
        self._key = key
        self._kinds = frozenset(kinds)
        self._numbers = not self._kinds.isdisjoint(NUMBER_KINDS)
        self._own = {name: _own_pattern(name, text) for name, text in (own or {}).items()}
        self.enabled = enabled
        self._short: dict[str, tuple[str, dict[str, int]]] = {}

    def alias(self, kind: str, value: str) -> str:
        """The alias of a normalised value: the first 10 hex digits of its BLAKE2b under the key."""
        digest = blake2b(value.encode("utf-8", "surrogatepass"), key=self._key).hexdigest()
        return f"<{kind}-{digest[:10]}>"

    def mask(self, text: str) -> tuple[str, dict[str, int]]:
        """`text` with aliases (and letters as themselves that were written as codes), and how many
        values of each kind were replaced."""
        if not self.enabled:
            return text, {}
        if len(text) > _SHORT:
            return self._mask(text)
        known = self._short.get(text)
        if known is None:
            if len(self._short) >= _SHORT_KEPT:
                self._short.clear()
            known = self._short[text] = self._mask(text)
        return known[0], dict(known[1])

    def _mask(self, text: str) -> tuple[str, dict[str, int]]:
        """Repeated until nothing is left to replace: a value can stand where only the alias of its
        neighbour makes it recognisable. Each round leaves less that is no alias, so it ends."""
        counts: dict[str, int] = {}
        text = readable(text)
        rounds = 0
        while found := self._disjoint(text):
            parts = []
            done = 0
            rounds += 1
            for start, end, kind, value in found:
                if start < done:
                    continue
                if rounds > _ROUNDS and (rest := _UP_TO_BLANK.match(text, end)):
                    end, value = rest.end(), text[start : rest.end()]
                parts += [text[done:start], self.alias(kind, value)]
                done = end
                counts[kind] = counts.get(kind, 0) + 1
            text = "".join((*parts, text[done:]))
        return text, counts

    def mask_named(self, name: str, value: str) -> tuple[str, dict[str, int]]:
        """The alias of `value` as a whole where the name of its field says that it is private;
        otherwise `value` as it is, for `mask` to look into."""
        kind = kind_of(name[-_LONGEST_NAME:]) if self.enabled else None
        if kind is None or ALIAS.fullmatch(value) or not fits(kind, value):
            return value, {}
        if kind == "password":
            kind = "secret"
        if kind not in self._kinds:
            return value, {}
        if kind != "secret":
            # As `mask` would say it, so that a value has one alias wherever it stands.
            masked, counts = self.mask(value)
            if counts:
                return masked, counts
        return self.alias(kind, value), {kind: 1}

    def _disjoint(self, text: str) -> list[Found]:
        """What to replace, left to right: credentials win over what lies inside them, then own
        patterns, then the rest by position; an alias that is already there is never touched."""
        found = self._find(text)
        if not found:
            return found
        aliases = [match.span() for match in ALIAS.finditer(text)] if "<" in text else []
        taken: list[Found] = []
        for one in found:
            place = bisect_left(taken, one.start, key=attrgetter("start"))
            beside = taken[max(place - 1, 0) : place + 1]
            if any(one.start < t.end and t.start < one.end for t in beside):
                continue
            first = bisect_right(aliases, one.start, key=itemgetter(1))
            behind = bisect_left(aliases, one.end, key=itemgetter(0))
            if not any(_spoils(one, alias) for alias in aliases[first:behind]):
                taken.insert(place, one)
        return taken

    def _find(self, text: str) -> list[Found]:
        kinds = self._kinds
        shadow = shadow_of(text)
        found = credentials(shadow) if "secret" in kinds else []
        for name, pattern in self._own.items():
            found += (Found(*m.span(), name, m[0]) for m in pattern.finditer(text) if m[0])
        if "email" in kinds and "@" in shadow.text:
            found += emails(shadow.text)
        if "id_card" in kinds and not (
            shadow.hints.isdisjoint(PAPER_WORDS) and shadow.text.isascii()
        ):
            found += papers(shadow)
        if "card" in kinds:
            found += accounts(shadow)
        if "phone" in kinds and not shadow.hints.isdisjoint(CONTACT_WORDS):
            found += contacts(shadow)
        if self._numbers:
            found += [one for one in numbers(shadow.text) if one.kind in kinds]
        if "ip" in kinds:
            if "ip-" in shadow.hints:
                found += hosts(shadow)
            if "::" in shadow.text or shadow.text.count(":") >= 7:
                found += ipv6(shadow.text)
        return found


def _spoils(found: Found, alias: tuple[int, int]) -> bool:
    """Whether replacing `found` would cut an alias that it touches, or replace nothing but it."""
    start, end = alias
    return not (found.start <= start and end <= found.end) or found[:2] == alias


def _own_pattern(name: str, text: str) -> re.Pattern[str]:
    if not _OWN_NAME.fullmatch(name):
        raise ValueError(
            f"a kind to mask cannot be named {name!r}: use lower-case letters, digits, _"
        )
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"the pattern of {name} is not a regular expression: {error}") from error


def load_key(path: Path) -> bytes:
    """The key of aliases at `path`: 32 bytes, made on first use, readable by its owner only.

    Two processes that make it at once get the same one: the file appears whole, by a link that
    only the first can set. Raises OSError, and ValueError for a file that holds no key.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            draft.unlink()
    key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise ValueError(f"{path} holds {len(key)} bytes and not a key of {_KEY_BYTES}")
    return key
