"""One JSON document (or several in a row) that fills a file -> its records, streamed.

Invariant: memory holds one element and one chunk; an element that is broken is one rejection and
the next is read; nothing that could be a record is passed over without a rejection.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

from job.read.encoding import Encoding
from job.read.json_cursor import Cursor, Cut, TooLong
from job.read.rejections import (
    bad_json,
    beside_records,
    not_a_record,
    too_long,
    truncated,
    without_records,
)
from job.records import Raw, Rejected


def read_json(
    chunks: Iterable[bytes], position: int, source: str, encoding: Encoding, path: tuple[str, ...]
) -> Iterator[Raw | Rejected]:
    """The records of a document whose first byte lies at `position`.

    The elements of an array are the records. Of an object, those of the array that `path` (keys
    from the outside in) leads to; with an empty path the object itself is one.
    """
    return _Document(Cursor(chunks, position, encoding), source).records(path)


class _Document:
    """The walk through a document; each method reads one construct from the cursor on and raises
    Cut where the text ends inside it."""

    def __init__(self, cursor: Cursor, source: str) -> None:
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
        except Cut as error:
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
            except Cut:
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
            except Cut:
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
            raise Cut(f"no {bracket!r} at the end")
        if following not in ("]", "}"):
            return False
        if following != bracket:
            yield self._rejected(ValueError(f"{following!r} where {bracket!r} should be"))
        return self._cursor.take(following)

    def _rejected(self, error: ValueError) -> Rejected:
        place = self._source, self._cursor.position
        if isinstance(error, TooLong):
            return too_long(*place, self._cursor.excerpt)
        return bad_json(*place, error, self._cursor.excerpt)
