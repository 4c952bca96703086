"""JSON as it is found: what the strict parser refuses but can still be read, with what was odd.

Invariant: the strings that come out are valid Unicode, whole numbers keep every digit, and what
was lost or may surprise is named among the flags.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

import orjson

from job.read.encoding import Encoding, repair

_LONE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_LONG_NUMBER = re.compile(r"\d{20}|-\d{19}", re.ASCII)
_NESTED = frozenset((dict, list))
_DIGITS = bytes(48 if 48 <= code <= 57 else code if code == 45 else 32 for code in range(256))


def holds_long_number(data: bytes) -> bool:
    """Whether a run of digits is too long for a 64-bit integer, which the fast parser would read
    as a float. A look at the whole block: two passes in C, no look at each line."""
    digits = data.translate(_DIGITS)
    return b"0" * 20 in digits or b"-" + b"0" * 19 in digits


def count_keys(value: Any) -> int:
    """The keys of all objects in a parsed value. As the parser keeps one of two equal keys, a text
    that holds `":` more often than this has either a doubled key or such a place inside a string.
    """
    if type(value) is dict:
        return len(value) + sum(count_keys(v) for v in value.values() if type(v) in _NESTED)
    if type(value) is list:
        return sum(count_keys(v) for v in value if type(v) in _NESTED)
    return 0


def parse_line(line: str, encoding: Encoding) -> tuple[Any, tuple[str, ...]]:
    """The value of a decoded line that holds one JSON value, by the fast parser where it can read
    that exactly, and what was odd about it. Raises ValueError."""
    if not _LONG_NUMBER.search(line) and "\\u0000" not in line:
        try:
            value = orjson.loads(line)
            if line.count('":') + line.count('" :') == count_keys(value):
                return value, ()
        except orjson.JSONDecodeError:
            pass
    parser = LenientJson(encoding)
    value = parser.parse(line)
    return value, tuple(sorted(parser.flags))


def keep_all(pairs: list[tuple[str, Any]]) -> tuple[dict[str, Any], bool]:
    """A dict of all pairs, and whether a key came twice: the last value has the key, as parsers
    have it, and those before it that differ are kept as `key_1`, `key_2`, ..."""
    made = dict(pairs)
    if len(made) == len(pairs):
        return made, False
    kept: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    left = Counter(key for key, _ in pairs)
    for key, value in pairs:
        left[key] -= 1
        if not left[key]:
            kept[key] = value
        elif value != made[key]:
            number = numbers.get(key, 0) + 1
            while (other := f"{key}_{number}") in made:
                number += 1
            numbers[key] = number
            kept[other] = value
    return kept, True


class LenientJson:
    """A parser that also takes NaN and Infinity, control characters inside strings, lone
    surrogates, a byte order mark and bytes that did not decode; names them in `flags`, which hold
    what was odd about the last value."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self.flags: set[str] = set()
        self._decoder = json.JSONDecoder(
            strict=False,
            parse_constant=self._constant,
            parse_float=self._float,
            object_pairs_hook=self._object,
        )

    def parse(self, text: str) -> Any:
        """The value of decoded text that holds one JSON value. Raises ValueError."""
        text = text.strip("\ufeff \t\r\n")
        value, end = self.value_at(text, 0)
        if end != len(text):
            raise json.JSONDecodeError("more than one value", text, end)
        return value

    def value_at(self, text: str, index: int) -> tuple[Any, int]:
        """The JSON value that begins at an index of decoded text, and the index of its end.
        Raises ValueError (json.JSONDecodeError where it knows the place)."""
        self.flags.clear()
        try:
            value, end = self._decoder.raw_decode(text, index)
            if self._encoding.holds_bad_bytes(segment := text[index:end]):
                self.flags.add("bad_bytes")
                value, _ = self._decoder.raw_decode(repair(segment))
            if _LONE_ESCAPE.search(segment):
                value = self._mended(value)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
        if "\0" in segment or "\\u0000" in segment:
            self.flags.add("nul")
        return value, end

    def _constant(self, name: str) -> float:
        self.flags.add("nan")
        return float(name)

    def _float(self, text: str) -> float:
        number = float(text)
        if math.isinf(number):
            self.flags.add("nan")
        return number

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made, doubled = keep_all(pairs)
        if doubled:
            self.flags.add("duplicate_key")
        return made

    def _mended(self, value: Any) -> Any:
        """The value without the halves of surrogate pairs that escapes can spell."""
        if isinstance(value, str):
            mended = repair(value)
            if mended != value:
                self.flags.add("lone_surrogate")
            return mended
        if isinstance(value, list):
            return [self._mended(item) for item in value]
        if isinstance(value, dict):
            return {self._mended(key): self._mended(item) for key, item in value.items()}
        return value
