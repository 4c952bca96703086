"""logfmt: a line of key=value pairs."""

from __future__ import annotations

import json
import re

from job.read.json_value import keep_all

_KEY = r"[A-Za-z_@][\w.@/-]*"
_QUOTED = r'"(?:[^"\\\n]|\\.)*+"'
_PAIR = rf"{_KEY}=(?:{_QUOTED}|[^\s\"]*+)"
LOGFMT_LINE = rf"{_PAIR}(?:[ \t]+{_PAIR})+[ \t\r]*(?=\n|$)"
"""The source of a pattern for a whole line of at least two pairs and nothing else."""
_LINE = re.compile(LOGFMT_LINE)
_PAIRS = re.compile(rf"({_KEY})=(?:({_QUOTED})|([^\s\"]*+))")


def parse_logfmt(line: str) -> tuple[dict[str, str], bool] | None:
    """The pairs of a line, and whether a key came twice (all are kept, see `keep_all`); None where
    the line is not logfmt throughout."""
    if not _LINE.fullmatch(line):
        return None
    found = _PAIRS.findall(line)
    return keep_all([(key, _unquoted(quoted) if quoted else bare) for key, quoted, bare in found])


def _unquoted(text: str) -> str:
    if "\\" not in text:
        return text[1:-1]
    try:
        return str(json.loads(text, strict=False))
    except ValueError:
        return text[1:-1]
