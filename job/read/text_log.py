"""Plain-text logs, logfmt and files that mix them with JSON lines -> raw records.

Invariant: where a record starts does not depend on where a file was cut. A *sure start* is a line
that opens a record whatever stood before it; a slice owns what lies between the first sure start
at or after its beginning and the first one at or after its end. Inside such a stretch a record may
also start at a line that is one only because of the line before; that needs no other slice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from job import times
from job.read.encoding import Encoding, repair
from job.read.json_value import parse_line
from job.read.lines import MAX_RECORD_BYTES, Block
from job.read.logfmt import LOGFMT_LINE, parse_logfmt
from job.read.rejections import too_long
from job.read.repeats import is_last_repeated, last_again, may_hold_last
from job.records import Raw, Rejected

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_CONTINUATION = (
    r"[ \t]|Traceback |Caused by: |Suppressed: |at [\w$.<]|\.\.\.|[\]})]+[,;]?[ \t\r]*(?=\n|$)"
    r"|-----END |(?:[A-Za-z0-9+/]{64}|[A-Za-z0-9+/]{2,63}={1,2})[ \t\r]*(?=\n|$)"
)
"""How a line begins that goes on with the record before it, in a log whose lines have no times; the
last two are of an armoured key or certificate."""
_EXCEPTION_NAME = r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit)(?=:|\r?\n|$)"
_EXCEPTION = re.compile(_EXCEPTION_NAME, re.ASCII)
_UNTIMED = rf"(?!{_CONTINUATION}|{_EXCEPTION_NAME})\S"
_COMPLETE = rf"\{{[^\n]*\}}[ \t\r]*(?=\n|$)|{LOGFMT_LINE}"


_BLANK = " \t\r\n\x0b\x0c"
_BLANK_LINES = re.compile(rf"(?:[{_BLANK}]*\n)*")


_CONTINUED = re.compile(rf"{_CONTINUATION}|{_EXCEPTION_NAME}", re.ASCII)


def strip_ansi(text: str) -> str:
    """The text without terminal escapes."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def looks_continued(line: str) -> bool:
    """Whether a line goes on with the record before it, in a log whose lines have no times."""
    return _CONTINUED.match(line) is not None


def opens_exception(line: str) -> bool:
    """Whether a line begins with the name of an exception, as the last of a traceback does."""
    return _EXCEPTION.match(line) is not None


@dataclass(slots=True)
class _Stretch:
    """The text from one sure start to the next, which may come in several blocks."""

    position: int
    size: int = 0
    pieces: list[str] = field(default_factory=list)

    def add(self, text: str, size: int) -> None:
        self.size += size
        if self.size <= MAX_RECORD_BYTES or not self.pieces:
            self.pieces.append(text)


class TextLog:
    """How the records of a log are found. `timed`: they open with a time; otherwise with any line
    that does not look like a continuation. `mixed`: a JSON object and logfmt pairs that fill a
    line are records too."""

    def __init__(self, source: str, encoding: Encoding, timed: bool, mixed: bool) -> None:
        self._source = source
        self._encoding = encoding
        self._timed = timed
        self._mixed = mixed
        starts = [*([_COMPLETE] if mixed else []), times.START if timed else _UNTIMED]
        self._start = re.compile(rf"\n(?:{'|'.join(starts)})", re.ASCII)

    def records(
        self, blocks: Iterable[Block], end: int | None, from_start: bool
    ) -> Iterator[Raw | Rejected]:
        """The records between the first sure start in `blocks` and the first one at or after
        `end` (a byte offset; None: the end of the file). `from_start`: the blocks begin where the
        file does, whose first line opens a record whatever it is."""
        open_stretch: _Stretch | None = None
        for block in blocks:
            past = end is not None and block.position >= end
            if block.too_long and not past:
                yield too_long(self._source, block.position, self._encoding.decode(block.data)[0])
            if past and open_stretch is None:
                return
            if block.too_long:
                continue
            if from_start:
                open_stretch, from_start = _Stretch(block.position), False
            text, bad = self._encoding.decode(block.data)
            starts = self._sure_starts(text)
            first = starts[0] if starts else len(text)
            first_size = self._encoding.byte_length(text[:first])
            if open_stretch:
                open_stretch.add(text[:first], first_size)
            if not starts:
                continue
            if open_stretch:
                yield from self._split(open_stretch)
            if past:
                return
            position = block.position + first_size
            plain = not (
                bad or self._mixed or "\x1b" in text or "\0" in text or may_hold_last(text)
            )
            ascii_only = len(text) == len(block.data)
            crlf = "\r" in text
            for start, stop in pairwise(starts):
                piece = text[start:stop]
                size = stop - start if ascii_only else self._encoding.byte_length(piece)
                if plain and (self._timed or "\n" not in piece[:-1]) and size <= MAX_RECORD_BYTES:
                    tidy = piece.rstrip("\r\n")
                    if crlf:
                        tidy = tidy.replace("\r\n", "\n")
                    yield Raw(self._source, position, tidy, "text")
                else:
                    yield from self._split(_Stretch(position, size, [piece]))
                position += size
            rest = text[starts[-1] :]
            open_stretch = _Stretch(position, self._encoding.byte_length(rest), [rest])
        if open_stretch:
            yield from self._split(open_stretch)

    def _sure_starts(self, text: str) -> list[int]:
        """Offsets of the lines that are sure starts. A block with escapes is looked at line by
        line, since they may stand inside a time."""
        if "\x1b" not in text:
            # The line feed put before moves each match to the offset of the line behind it.
            found = [match.start() for match in self._start.finditer("\n" + text)]
            if not may_hold_last(text):
                return found
            return [at for at in found if not is_last_repeated(_line_at(text, at))]
        starts, offset = [], 0
        for line in text.split("\n"):
            shown = strip_ansi(line)
            if self._start.match("\n" + shown) and not is_last_repeated(shown):
                starts.append(offset)
            offset += len(line) + 1
        return starts

    def _split(self, stretch: _Stretch) -> Iterator[Raw | Rejected]:
        """The records of a stretch: one in a log with times; elsewhere a record may also follow a
        complete JSON or logfmt line, or begin with an exception that came without a traceback."""
        if stretch.size > MAX_RECORD_BYTES:
            yield too_long(self._source, stretch.position, stretch.pieces[0])
            return
        text, position = "".join(stretch.pieces), stretch.position
        if self._mixed:
            line, feed, rest = text.partition("\n")
            if record := self._complete(line, position):
                yield record
                if not rest:
                    return
                position += self._encoding.byte_length(line + feed)
                text = rest
        inner = [] if self._timed else _lone_exceptions(text)
        if may_hold_last(text):
            inner = sorted({*inner, *_last_repeated(text)} - {0})
        before: Raw | None = None
        for start, stop in pairwise([0, *inner, len(text)]):
            piece = text[start:stop]
            blank = _BLANK_LINES.match(piece)
            shown = piece[blank.end() :] if blank else piece
            if shown.strip(_BLANK):
                passed = self._encoding.byte_length(piece[: len(piece) - len(shown)])
                record = self._text(shown, position + passed)
                if is_last_repeated(str(record.value)):
                    yield from last_again(record, before)
                else:
                    yield (before := record)
            position += self._encoding.byte_length(piece)

    def _text(self, text: str, position: int) -> Raw:
        flags = []
        if self._encoding.holds_bad_bytes(text):
            flags.append("bad_bytes")
        if self._mixed and text.startswith("{"):
            flags.append("bad_json")
        if "\0" in text:
            flags.append("nul")
        text = repair(text)
        if "\x1b" in text and (stripped := strip_ansi(text)) != text:
            flags.append("ansi")
            text = stripped
        tidy = text.rstrip("\r\n").replace("\r\n", "\n")
        return Raw(self._source, position, tidy, "text", tuple(sorted(flags)))

    def _complete(self, line: str, position: int) -> Raw | None:
        """The record that a line is by itself, if it is a JSON object or logfmt."""
        line = strip_ansi(line).rstrip(" \t\r")
        if line.startswith("{") and line.endswith("}"):
            try:
                value, odd = parse_line(line, self._encoding)
            except ValueError:
                return None
            return Raw(self._source, position, value, "json", odd)
        if parsed := parse_logfmt(repair(line)):
            pairs, doubled = parsed
            flags = ["bad_bytes"] if self._encoding.holds_bad_bytes(line) else []
            flags += ["duplicate_key"] if doubled else []
            return Raw(self._source, position, pairs, "logfmt", tuple(flags))
        return None


def _line_at(text: str, start: int) -> str:
    end = text.find("\n", start)
    return text[start:] if end < 0 else text[start:end]


def _last_repeated(text: str) -> list[int]:
    """Offsets of the lines that say that the message before them came again."""
    found, offset = [], 0
    for line in text.split("\n"):
        if is_last_repeated(line):
            found.append(offset)
        offset += len(line) + 1
    return found


def _lone_exceptions(text: str) -> list[int]:
    """Offsets of lines that name an exception and end no traceback: nothing indented and no
    heading of one comes before them."""
    found = []
    before, offset = "", 0
    for line in text.split("\n"):
        ends_traceback = before.startswith((" ", "\t", "Traceback "))
        if before and not ends_traceback and _EXCEPTION.match(line.rstrip("\r")):
            found.append(offset)
        before, offset = line.rstrip("\r"), offset + len(line) + 1
    return found
