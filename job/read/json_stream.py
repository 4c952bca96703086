"""One JSON document (or several in a row) that fills a file -> its records, streamed.

Invariant: memory holds one element and one chunk; an element that is broken is one rejection and
the next is read; nothing that could be a record is passed over without a rejection.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Generator, Iterable, Iterator
from typing import Any

from job.read.encoding import Encoding
from job.read.json_value import LenientJson
from job.read.lines import MAX_RECORD_BYTES
from job.read.rejections import (
    EXCERPT_CHARACTERS,
    bad_json,
    beside_records,
    not_a_record,
    too_long,
    truncated,
    without_records,
)
from job.records import Raw, Rejected

_WHITE = re.compile(r"[ \t\r\n\ufeff]*")
_TOKEN = re.compile(r'["\[\]{},]')
_STRING_BODY = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_CUT_MARGIN = 12
"""Characters before the end within which an error may come from the cut itself: `-Infinit`."""


def read_json(
    chunks: Iterable[bytes], position: int, source: str, encoding: Encoding, path: tuple[str, ...]
) -> Iterator[Raw | Rejected]:
    """The records of a document whose first byte lies at `position`.

    The elements of an array are the records. Of an object, those of the array that `path` (keys
    from the outside in) leads to; with an empty path the object itself is one.
    """
    return _Document(_Cursor(chunks, position, encoding), source).records(path)


class _TooLong(ValueError):
    """A value of more than MAX_RECORD_BYTES."""


class _Cut(ValueError):
    """The text ends inside a value."""


class _Cursor:
    """A place in decoded text that is read chunk by chunk, and the byte offset it stands for."""

    def __init__(self, chunks: Iterable[bytes], position: int, encoding: Encoding) -> None:
        self._chunks = iter(chunks)
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding.codec)(encoding.errors)
        self._parser = LenientJson(encoding)
        self._text, self._index = "", 0
        self._measured, self._position = 0, position
        self._ended = False

    @property
    def position(self) -> int:
        """The byte offset of the next character."""
        passed = self._text[self._measured : self._index]
        self._position += self._encoding.byte_length(passed)
        self._measured = self._index
        return self._position

    @property
    def flags(self) -> tuple[str, ...]:
        """What was odd about the last value."""
        return tuple(sorted(self._parser.flags))

    @property
    def excerpt(self) -> str:
        """The text from here on, enough to show."""
        while len(self._text) - self._index < EXCERPT_CHARACTERS and self._more():
            pass
        return self._text[self._index : self._index + EXCERPT_CHARACTERS]

    def peek(self) -> str:
        """The next character that is not white space, or "" at the end."""
        while True:
            match = _WHITE.match(self._text, self._index)
            self._index = match.end() if match else self._index
            if self._index < len(self._text):
                return self._text[self._index]
            if not self._more():
                return ""

    def take(self, character: str) -> bool:
        """Passes over the next character if it is this one."""
        if self.peek() != character:
            return False
        self._index += 1
        return True

    def value(self) -> Any:
        """Passes over the JSON value that begins here. Where the text is none it raises
        ValueError and stays; an error near the end of what was read so far may be only that."""
        while True:
            size = len(self._text) - self._index
            try:
                value, end = self._parser.value_at(self._text, self._index)
            except json.JSONDecodeError as error:
                open_string = error.msg.startswith("Unterminated")
                maybe_cut = open_string or error.pos + _CUT_MARGIN > len(self._text)
                if maybe_cut and self._grow(size):
                    continue
                cut = open_string or error.pos >= len(self._text.rstrip())
                if cut:
                    raise _Cut(f"the text ends inside a value: {error.msg}") from error
                raise ValueError(error.msg) from error
            # A number that ends with the text may go on in the next chunk.
            if end == len(self._text) and self._grow(size):
                continue
            self._index = end
            return value

    def pass_broken(self) -> None:
        """Passes over what stands here up to the comma or bracket that ends an element. Raises
        _Cut where the text ends before that."""
        depth, in_string = 0, False
        while True:
            if in_string and (body := _STRING_BODY.match(self._text, self._index)):
                self._index = body.end()
                # A backslash at the very end waits for its character.
                in_string = not self._text.startswith('"', self._index)
                self._index += not in_string
            token = None if in_string else _TOKEN.search(self._text, self._index)
            if token is None:
                self._index = self._index if in_string else len(self._text)
                if not self._more():
                    raise _Cut("the text ends before the broken value does")
            elif depth == 0 and token[0] in ",]}":
                self._index = token.start()
                return
            else:
                self._index = token.end()
                in_string = token[0] == '"'
                depth += (token[0] in "[{") - (token[0] in "]}")

    def _grow(self, size: int) -> bool:
        """Reads on until the text that begins here is twice as long; False at the end."""
        if size > MAX_RECORD_BYTES:
            raise _TooLong
        while len(self._text) - self._index <= 2 * size and self._more():
            pass
        return len(self._text) - self._index > size

    def _more(self) -> bool:
        """Reads on, dropping the text before this place; False, with all as it was, at the end."""
        added = ""
        while not (added or self._ended):
            chunk = next(self._chunks, b"")
            self._ended = not chunk
            added = self._decoder.decode(chunk, final=self._ended)
        if added:
            position = self.position
            self._text, self._index, self._measured = self._text[self._index :] + added, 0, 0
            self._position = position
        return bool(added)


class _Document:
    """The walk through a document; each method reads one construct from the cursor on and raises
    _Cut where the text ends inside it."""

    def __init__(self, cursor: _Cursor, source: str) -> None:
        self._cursor = cursor
        self._source = source

    def records(self, path: tuple[str, ...]) -> Iterator[Raw | Rejected]:
        try:
            while first := self._cursor.peek():
                if first == "[":
                    yield from self._elements()
                elif first == "{" and path:
                    yield from self._fields(path)
                else:
                    yield self._record()
                self._cursor.take(",")
        except _Cut as error:
            yield truncated(self._source, self._cursor.position, str(error), self._cursor.excerpt)
        except ValueError as error:
            # What is no JSON at all has no element at which to take up the thread again.
            yield self._rejected(ValueError(f"{error}; the rest of the file is not read"))

    def _elements(self) -> Iterator[Raw | Rejected]:
        """The elements of the array that begins here."""
        self._cursor.take("[")
        while not (yield from self._closed("]")):
            try:
                yield self._record()
            except _Cut:
                raise
            except ValueError as error:
                yield self._rejected(error)
                self._cursor.pass_broken()
            yield from self._separator()

    def _fields(self, path: tuple[str, ...]) -> Iterator[Raw | Rejected]:
        """The fields of the object that begins here, one of which leads to the array."""
        position, found = self._cursor.position, False
        self._cursor.take("{")
        while not (yield from self._closed("}")):
            try:
                key = self._cursor.value()
                if not self._cursor.take(":"):
                    raise ValueError("a key without a value")
                first = self._cursor.peek()
                if key == path[0] and first == ("[" if len(path) == 1 else "{"):
                    found = True
                    yield from self._fields(path[1:]) if path[1:] else self._elements()
                else:
                    value_position, value = self._cursor.position, self._cursor.value()
                    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
                        yield beside_records(self._source, value_position, str(key), len(value))
            except _Cut:
                raise
            except ValueError as error:
                yield self._rejected(error)
                self._cursor.pass_broken()
            yield from self._separator()
        if not found:
            yield without_records(self._source, position, path)

    def _record(self) -> Raw | Rejected:
        """Raises ValueError where no JSON value stands here."""
        self._cursor.peek()
        position, value = self._cursor.position, self._cursor.value()
        if isinstance(value, dict | list):
            return Raw(self._source, position, value, "json", self._cursor.flags)
        return not_a_record(self._source, position, value)

    def _separator(self) -> Iterator[Rejected]:
        """Passes over the comma behind a value; one that is missing does no harm, anything else
        that stands there is rejected."""
        if not self._cursor.take(",") and self._cursor.peek() not in ("", *"]}[{"):
            yield self._rejected(ValueError("no comma between two values"))
            self._cursor.pass_broken()
            self._cursor.take(",")

    def _closed(self, bracket: str) -> Generator[Rejected, None, bool]:
        """Whether the array or object ends here, be it with the wrong bracket."""
        following = self._cursor.peek()
        if following == "":
            raise _Cut(f"no {bracket!r} at the end")
        if following not in ("]", "}"):
            return False
        if following != bracket:
            yield self._rejected(ValueError(f"{following!r} where {bracket!r} should be"))
        return self._cursor.take(following)

    def _rejected(self, error: ValueError) -> Rejected:
        place = self._source, self._cursor.position
        if isinstance(error, _TooLong):
            return too_long(*place, self._cursor.excerpt)
        return bad_json(*place, error, self._cursor.excerpt)
