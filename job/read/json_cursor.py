"""A place in a JSON text that is read chunk by chunk.

Invariant: memory holds the value at the cursor and one chunk; `position` is the byte offset in the
file of the next character, whatever the encoding.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable
from typing import Any

from job.read.encoding import Encoding
from job.read.json_value import LenientJson
from job.read.lines import MAX_RECORD_BYTES
from job.read.rejections import EXCERPT_CHARACTERS

_WHITE = re.compile(r"[ \t\r\n\ufeff]*")
_TOKEN = re.compile(r'["\[\]{},]')
_STRING_BODY = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_CUT_MARGIN = 12
"""Characters before the end within which an error may come from the cut itself: `-Infinit`."""


class TooLong(ValueError):
    """A value of more than MAX_RECORD_BYTES."""


class Cut(ValueError):
    """The text ends inside a value."""


class Cursor:
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
                    raise Cut(f"the text ends inside a value: {error.msg}") from error
                raise ValueError(error.msg) from error
            # A number that ends with the text may go on in the next chunk.
            if end == len(self._text) and self._grow(size):
                continue
            self._index = end
            return value

    def pass_broken(self) -> None:
        """Passes over what stands here up to the comma or bracket that ends an element. Raises
        Cut where the text ends before that."""
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
                    raise Cut("the text ends before the broken value does")
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
            raise TooLong
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
