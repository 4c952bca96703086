"""What comes from logs, file names or a provider, as a terminal may show it.

Invariant: the text stays on its line and in its direction, moves no cursor, and can be encoded as
UTF-8; ordinary text in any language is not changed.
"""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\U000e0000-\U000e007f]"
)
"""Control characters, line and paragraph separators, marks and overrides of direction, and what no
reader sees. Joiners (U+200C, U+200D) belong to words and emoji."""
_SPACES = frozenset("\t\n\v\f\r\x85\u2028\u2029")


def printable(text: str) -> str:
    """`text` for one line: white space that moves the cursor becomes a space, other characters
    that a terminal would obey or hide become U+FFFD, bytes of a file name that are no UTF-8 are
    written as `\\xff`."""
    if text.isascii() and text.isprintable():
        return text
    text = _HIDDEN.sub(lambda match: " " if match[0] in _SPACES else "\ufffd", text)
    return encodable(text)


def encodable(text: str) -> str:
    """`text` with the bytes of a file name that are no UTF-8 (surrogates, in Python) as `\\xff`."""
    data = text.encode("utf-8", "surrogateescape" if _from_bytes(text) else "backslashreplace")
    return data.decode("utf-8", "backslashreplace")


def _from_bytes(text: str) -> bool:
    """Whether every surrogate in `text` stands for a byte (PEP 383)."""
    return all("\udc80" <= c <= "\udcff" for c in text if "\ud800" <= c <= "\udfff")
