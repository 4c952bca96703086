"""The body of `POST /v1/search`, read and checked. Pure.

Invariant: a query is what the OpenAPI document allows, and everything that allows is a query.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from serve.ask.judgement import SEVERITIES
from serve.search.documents import KINDS, WHATS
from serve.search.errors import BadQuery

Mode = Literal["both", "words", "meaning"]
MODES: tuple[Mode, ...] = get_args(Mode)
FIELDS = (
    *("query", "mode", "limit", "what", "kind", "severity", "theme", "source", "run"),
    *("since", "until"),
)
LONGEST = 2_000
"""Characters of a query."""
MOST, USUAL = 100, 10
"""Hits of one answer."""
LONGEST_NAME = 1_000
"""Characters of a value of a filter."""
MOST_NAMES = 100
"""Values of one filter."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d([.,]\d+)?)?([Zz]|[+-]\d\d:\d\d)")


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for. Empty filters let everything pass; `since` and `until` are microseconds
    since the epoch, both inclusive; `severities`: a bit for each of SEVERITIES; `source`: patterns
    with `*` and `?`; `run`: ids or names of folders."""

    text: str
    mode: Mode = "both"
    limit: int = USUAL
    what: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    severities: int = 0
    theme: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None

    @property
    def filters(self) -> bool:
        """Whether there is a document of a run that does not pass."""
        sets = self.what, self.kind, self.severities, self.theme, self.source
        return any(sets) or self.since is not None or self.until is not None


def read_query(body: Mapping[str, Any]) -> Query:
    """The query of a body. Raises BadQuery, which names the field."""
    for name in body:
        if name not in FIELDS:
            known = ", ".join(FIELDS)
            raise BadQuery(f"Unknown parameter: '{name[:100]}'. Known are: {known}.", name[:100])
    text = body.get("query")
    if not isinstance(text, str) or not text.strip():
        raise BadQuery("Send what you look for as a string that is not empty in 'query'.", "query")
    if len(text) > LONGEST:
        raise BadQuery(f"'query' has {len(text):,} characters, and {LONGEST:,} at most.", "query")
    mode = "both" if body.get("mode") is None else body["mode"]
    if not isinstance(mode, str) or mode not in MODES:
        raise BadQuery(f"'mode' is one of: {', '.join(MODES)}.", "mode")
    limit = USUAL if body.get("limit") is None else body["limit"]
    if isinstance(limit, float) and limit.is_integer():
        limit = int(limit)  # 10.0 is a whole number to JSON Schema
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MOST:
        raise BadQuery(f"'limit' is a whole number from 1 to {MOST}.", "limit")
    severities = _names(body, "severity", SEVERITIES)
    since, until = _time(body, "since"), _time(body, "until")
    if since is not None and until is not None and since > until:
        raise BadQuery("'since' is after 'until'.", "since")
    return Query(
        text=text,
        mode=mode,
        limit=limit,
        what=_names(body, "what", WHATS),
        kind=_names(body, "kind", KINDS),
        severities=sum(1 << SEVERITIES.index(name) for name in set(severities)),
        theme=_names(body, "theme"),
        source=_names(body, "source"),
        run=_names(body, "run"),
        since=since,
        until=until,
    )


def _names(body: Mapping[str, Any], name: str, known: Sequence[str] = ()) -> tuple[str, ...]:
    """One value or a list of them; nothing where there is none."""
    given = body.get(name)
    values = [given] if isinstance(given, str) else given
    if values is None:
        return ()
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise BadQuery(f"'{name}' is a string or a list of strings.", name)
    if not 1 <= len(values) <= MOST_NAMES:
        raise BadQuery(f"'{name}' is a list of 1 to {MOST_NAMES} strings.", name)
    if max(map(len, values)) > LONGEST_NAME:
        raise BadQuery(f"A value of '{name}' has {LONGEST_NAME:,} characters at most.", name)
    if known and not set(values) <= set(known):
        raise BadQuery(f"'{name}' is one or some of: {', '.join(known)}.", name)
    return tuple(values)


def _time(body: Mapping[str, Any], name: str) -> int | None:
    """A moment as microseconds since the epoch."""
    given = body.get(name)
    if given is None:
        return None
    said = f"'{name}' is a time with its zone, such as 2026-03-10T08:00:00+08:00."
    if not isinstance(given, str) or not _TIME.fullmatch(given):
        raise BadQuery(said, name)
    try:
        return (datetime.fromisoformat(given.upper()) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        raise BadQuery(said, name) from None
