"""JSON lines -> raw records: each line that is not blank is one record or one rejection."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import orjson

from job.read.encoding import Encoding
from job.read.json_value import count_keys, holds_long_number, parse_line
from job.read.lines import Block
from job.read.rejections import bad_json, not_a_record, too_long
from job.records import Raw, Rejected

_LONG_NUMBER = re.compile(rb"\d{20}|-\d{19}")


def read_json_lines(
    blocks: Iterable[Block], source: str, encoding: Encoding, end: int | None
) -> Iterator[Raw | Rejected]:
    """The records of the lines that start before `end` (a byte offset; None: all of them)."""
    for block in blocks:
        if end is not None and block.position >= end:
            return
        if block.too_long:
            yield too_long(source, block.position, encoding.decode(block.data)[0])
        elif encoding.codec == "utf-8":
            yield from _utf8_lines(block, source, encoding)
        else:
            yield from _other_lines(block, source, encoding)
        if end is not None and block.stop >= end:
            return


def _utf8_lines(block: Block, source: str, encoding: Encoding) -> Iterator[Raw | Rejected]:
    """The hot path: the bytes of a line go to the parser as they are."""
    position = block.position
    long_numbers = holds_long_number(block.data)
    nul = b"\\u0000" in block.data
    spaced = b'" :' in block.data
    loads = orjson.loads
    for line in block.data.split(b"\n"):
        try:
            if long_numbers and _LONG_NUMBER.search(line):
                raise ValueError
            value = loads(line)
            if type(value) is dict:
                keys = line.count(b'":') + (line.count(b'" :') if spaced else 0)
                # A colon behind a quote inside a text counts too, so more is only a suspicion.
                if keys != len(value) and keys != count_keys(value):
                    raise ValueError
        except ValueError:
            if line and not line.isspace():
                yield _lenient(encoding.decode(line)[0], source, position, encoding)
        else:
            if type(value) is dict or type(value) is list:
                flags = ("nul",) if nul and b"\\u0000" in line else ()
                yield Raw(source, position, value, "json", flags)
            else:
                yield not_a_record(source, position, value)
        position += len(line) + 1


def _other_lines(block: Block, source: str, encoding: Encoding) -> Iterator[Raw | Rejected]:
    position = block.position
    text, _ = encoding.decode(block.data)
    for line in text.split("\n"):
        if line and not line.isspace():
            yield _lenient(line, source, position, encoding)
        position += encoding.byte_length(line) + encoding.unit


def _lenient(line: str, source: str, position: int, encoding: Encoding) -> Raw | Rejected:
    try:
        value, flags = parse_line(line, encoding)
    except ValueError as error:
        return bad_json(source, position, error, line)
    if isinstance(value, dict | list):
        return Raw(source, position, value, "json", flags)
    return not_a_record(source, position, value)
