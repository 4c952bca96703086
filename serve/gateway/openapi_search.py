"""The values of `/v1/search` and `/v1/reports`, as JSON Schemas, and the codes of their errors.

Invariant: what a schema of a query allows, `serve.search.query` takes; an error has one of these
codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from serve.ask.judgement import SEVERITIES
from serve.search.documents import KINDS, WHATS
from serve.search.query import LONGEST, LONGEST_NAME, MODES, MOST, MOST_NAMES

_Schema = dict[str, Any]
_TEXT: Final[_Schema] = {"type": ["string", "null"]}
_COUNT: Final[_Schema] = {"type": "integer", "minimum": 0}


def _some(known: Sequence[str] = ()) -> _Schema:
    """One value, or a list of them."""
    one: _Schema = {"enum": list(known)} if known else {"type": "string", "maxLength": LONGEST_NAME}
    many = {"type": "array", "minItems": 1, "maxItems": MOST_NAMES, "items": one}
    return {"anyOf": [one, many, {"type": "null"}]}


_TIME: Final[_Schema] = {
    "type": ["string", "null"],
    "format": "date-time",
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}",
    "description": "With its zone; inclusive.",
}

Codes = dict[str, tuple[str | None, ...]]
"""Of errors, by their status; None: an error without a code."""
_COMING: Final[Codes] = {
    "401": ("invalid_api_key",),
    "403": ("search_not_allowed", "foreign_page"),
    "408": ("gateway_timed_out",),
    "413": ("body_too_large",),
    "500": ("internal_error", "gateway_replica_lost"),
}
_BUSY: Final = ("search_unavailable", "gateway_overloaded", "gateway_draining")
SEARCH_CODES: Final[Codes] = {
    **_COMING,
    "400": ("invalid_query", "body_timeout", None),
    "429": ("key_rate_limited", "key_money_held"),
    "503": (*_BUSY, "key_account_unavailable"),
}
REPORTS_CODES: Final[Codes] = {**_COMING, "400": ("body_timeout",), "503": _BUSY}
REPORT_CODES: Final[Codes] = {
    **REPORTS_CODES,
    "400": ("report_ambiguous", "body_timeout"),
    "404": ("report_not_found",),
}

SEARCH_SCHEMAS: Final[dict[str, _Schema]] = {
    "SearchQuery": {
        "type": "object",
        "required": ["query"],
        "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": LONGEST, "pattern": "\\S"},
            "mode": {"enum": [*MODES, None]},
            "limit": {"type": ["integer", "null"], "minimum": 1, "maximum": MOST},
            "what": _some(WHATS),
            "kind": _some(KINDS),
            "severity": _some(SEVERITIES),
            "theme": _some(),
            "source": _some(),
            "run": _some(),
            "since": _TIME,
            "until": _TIME,
        },
        "additionalProperties": False,
    },
    "SearchHit": {
        "type": "object",
        "required": ["object", "id", "run", "score", "excerpt", "highlights", "report"],
        "properties": {
            "object": {"enum": list(WHATS)},
            "id": {"type": "string", "description": "Of the theme, or of the record."},
            "run": {"type": "string"},
            "score": {"type": "number"},
            "ranks": {"type": "object", "additionalProperties": {"type": "integer"}},
            "excerpt": {"type": "string", "description": "A part of the text as it is, not HTML."},
            "highlights": {
                "type": "array",
                "description": "Begin and end of what was asked for, in Unicode characters.",
                "items": {"type": "array", "minItems": 2, "maxItems": 2, "items": _COUNT},
            },
            "cut": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "source": _TEXT,
            "position": {"type": ["integer", "null"]},
            "time": _TEXT,
            "kind": {"enum": [*KINDS, None]},
            "outcome": _TEXT,
            "severity": {"enum": [*SEVERITIES, None]},
            "themes": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["id", "title"],
                    "properties": {"id": {"type": "string"}, "title": {"type": "string"}},
                },
            },
            "like": {**_COUNT, "description": "More of the same text that pass the filters."},
            "report": {"type": "string", "description": "Where its page is."},
        },
    },
    "SearchAnswer": {
        "type": "object",
        "required": ["object", "query", "mode", "meaning", "hits", "searched", "skipped"],
        "properties": {
            "object": {"const": "search"},
            "query": {"type": "string"},
            "mode": {"enum": list(MODES)},
            "meaning": {"enum": ["used", "not_asked", "unavailable"]},
            "meaning_reason": {**_TEXT, "description": "Why it is unavailable."},
            "hits": {"type": "array", "items": {"$ref": "#/components/schemas/SearchHit"}},
            "searched": {"type": "object", "additionalProperties": _COUNT},
            "skipped": {
                **_COUNT,
                "description": "Runs that cannot be read: /v1/reports names them",
            },
        },
    },
    "Reports": {
        "type": "object",
        "required": ["object", "data", "skipped"],
        "properties": {
            "object": {"const": "list"},
            "data": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["object", "id", "name", "headline", "report", "files"],
                    "properties": {
                        "object": {"const": "report"},
                        "id": {"type": "string"},
                        "name": {"type": "string"},
                        "headline": {"type": "string"},
                        "first": _TEXT,
                        "last": _TEXT,
                        "timezone": _TEXT,
                        "language": _TEXT,
                        "model": _TEXT,
                        "finished": _TEXT,
                        "stopped": _TEXT,
                        "records": _COUNT,
                        "themes": _COUNT,
                        "texts": _COUNT,
                        "embedded": _COUNT,
                        "report": {"type": "string"},
                        "files": {"type": "array", "items": {"type": "string"}},
                    },
                },
            },
            "skipped": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["id", "name", "reason"],
                    "properties": {
                        "id": {"type": "string"},
                        "name": {"type": "string"},
                        "reason": {"type": "string"},
                    },
                },
            },
        },
    },
}
