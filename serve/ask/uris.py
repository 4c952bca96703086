"""URIs as they may be shown.

Invariant: nothing that can hold a secret (what stands before the host, the query, the fragment)
comes through; text that holds no URI stays as it is.
"""

from __future__ import annotations

import re

_USERINFO = re.compile(r"(?<=://)(?:[^/\s]*|[^/:\s]*:\S*)@")
"""Up to the last @ before the path; where a password holds an unescaped slash, up to the last @."""
_QUERY = re.compile(r"(://[^\s?#]*)[?#]\S*")


def without_secrets(text: str) -> str:
    """`text` with every URI in it as `scheme://***@host/path`."""
    if "://" not in text:
        return text
    return _QUERY.sub(r"\1", _USERINFO.sub("***@", text))
