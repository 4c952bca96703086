"""What a file is, from a sample of it.

Invariant: a format only decides how a file is read, never whether: every file of text has one, and
what does not fit it is rejected record by record.
"""

from __future__ import annotations

import csv
import json
import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

from job import times
from job.read.chats import NO_NAMES, ChatNames, are_messages
from job.read.containers import Woven, find_woven, is_docker, timed_streams
from job.read.dialect import Dialect, find_dialect, is_row, is_table
from job.read.documents import array_path, is_document
from job.read.encoding import UTF8, repair
from job.read.json_stream import read_json
from job.read.logfmt import parse_logfmt
from job.read.text_log import looks_continued, strip_ansi
from job.records import Raw

FormatName = Literal["jsonl", "json", "csv", "text", "logfmt", "mixed", "binary", "empty"]

LINE_FORMATS: frozenset[str] = frozenset({"jsonl", "text", "logfmt", "mixed"})
"""Formats in which a reader finds its first record from any place in the file."""

_JSON_LINES = {".jsonl", ".ndjson"}
_MIXED_SHARE = 0.1
"""Below this share of JSON and logfmt lines, a log with times holds them as part of its records."""
_TIMED_SHARE = 0.2
"""Share of the lines that are no continuations from which a log's records open with times."""
_BINARY = 8, 0.05
"""Control and undecoded characters, and their share, above which a file is no text."""
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd\udc80-\udcff]")
_SAMPLE_LINES = 2_000
_SAMPLE_ROWS = 200
_DOCKER_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Format:
    """How the records of a file are found.

    `timed`: records open with a time (text, logfmt, mixed). `path`: the keys from the outside in
    to the array that holds the records of a JSON object. `dialect`: of a csv. `woven`: how its
    lines name the streams they belong to; `timed_streams`: those whose records open with a time;
    `chat_names`: what messages of chats call their session and text.
    """

    name: FormatName
    timed: bool = False
    path: tuple[str, ...] = ()
    dialect: Dialect | None = None
    woven: Woven | None = None
    timed_streams: tuple[str, ...] = ()
    chat_names: ChatNames = NO_NAMES

    @property
    def shown(self) -> str:
        """For a person."""
        return f"{self.name} ({self.woven})" if self.woven else self.name


@dataclass(frozen=True, slots=True)
class Sample:
    """What is known of a file's text. `text`: its beginning, in whole lines where it has any;
    `complete`: that is the whole file; `elsewhere`: whole lines from other places in it."""

    name: str
    text: str
    complete: bool
    elsewhere: Sequence[str] = ()


def find_format(
    sample: Sample, is_time: Callable[[str], bool], names: ChatNames = NO_NAMES
) -> Format:
    """The format of a file. `is_time`: whether the text of a cell is a time; `names`: what the
    input's map says of chats."""
    form = _find_form(sample, is_time)
    text = repair(sample.text.lstrip("\ufeff"))
    if form.name in ("text", "csv") and not is_table(extension_of(sample.name)):
        lines = [line for line in islice(text.split("\n"), _SAMPLE_LINES) if line.strip()]
        if woven := find_woven(lines):
            timed = () if woven == "tagged" else timed_streams(woven, lines)
            return Format("text", woven=woven, timed_streams=timed)
    if form.name in ("jsonl", "json", "csv"):
        rows = _rows(text, form)
        if form.name == "jsonl" and sum(map(is_docker, rows)) >= max(_DOCKER_SHARE * len(rows), 1):
            return replace(form, woven="docker", timed_streams=timed_streams("docker", rows))
        if are_messages(rows, names):
            return replace(form, woven="chat", chat_names=names)
    return form


def _rows(text: str, form: Format) -> list[Any]:
    """The first values in a text, as far as they can be told."""
    if form.dialect:
        lines = (line.replace("\r", " ") + "\n" for line in text.split("\n"))
        above = form.dialect.before + form.dialect.heading
        cells = islice(filter(is_row, form.dialect.reader(lines)), above, _SAMPLE_ROWS)
        try:
            return [dict(zip(form.dialect.columns, row, strict=False)) for row in cells]
        except csv.Error:
            return []
    if form.name == "json":
        found = read_json([text.encode()], 0, "", UTF8, form.path)
        return [row.value for row in islice(found, _SAMPLE_ROWS) if isinstance(row, Raw)]
    filled = (line for line in text.split("\n") if line.strip())
    return [_parsed(line) for line in islice(filled, _SAMPLE_ROWS)]


def _find_form(sample: Sample, is_time: Callable[[str], bool]) -> Format:
    text = sample.text.lstrip("\ufeff")
    if not text.strip():
        return Format("empty" if sample.complete else "text")
    odd = len(_CONTROL.findall(text))
    if odd > _BINARY[0] and odd > _BINARY[1] * len(text):
        return Format("binary")
    text = repair(text)
    extension = extension_of(sample.name)
    lines = list(islice((line for line in text.split("\n") if line.strip()), _SAMPLE_LINES))
    alone = sample.complete and len(lines) == 1 and extension not in _JSON_LINES
    if is_document(text, sample.complete) and (alone or not _is_json(lines[0])):
        return Format("json", path=array_path(text))
    lines += sample.elsewhere
    is_json = [_is_json(line) for line in lines]
    objects = sum(is_json)
    like_json = sum(
        json or line.startswith('{"') for json, line in zip(is_json, lines, strict=True)
    )
    if objects and (like_json == len(lines) or extension in _JSON_LINES):
        return Format("jsonl")
    if is_table(extension) and not objects:
        return Format("csv", dialect=find_dialect(text, sample.complete, extension, is_time))
    plain = [line for line, known in zip(lines, is_json, strict=True) if not known]
    texts = [strip_ansi(line) for line in plain if parse_logfmt(line.strip()) is None]
    opening = [line for line in texts if not looks_continued(line)]
    timed = sum(map(times.starts_record, opening)) >= max(_TIMED_SHARE * len(opening), 1)
    if len(lines) - len(texts) >= _MIXED_SHARE * len(lines):
        return Format("mixed" if objects or texts else "logfmt", timed)
    if not timed and (dialect := find_dialect(text, sample.complete, extension, is_time)):
        return Format("csv", dialect=dialect)
    return Format("text", timed)


def extension_of(name: str) -> str:
    """The extension of a file's name, lower case, below that of its compression."""
    return posixpath.splitext(re.sub(r"\.(gz|zst)$", "", name.lower()))[1]


def _is_json(line: str) -> bool:
    """Whether a line is a JSON object or array."""
    return _parsed(line) is not None


def _parsed(line: str) -> Any:
    """The JSON object or array that a line is, or None."""
    line = line.lstrip("\ufeff \t")
    if line[:1] not in ("{", "["):
        return None
    try:
        return json.loads(line, strict=False)
    except (ValueError, RecursionError):
        return None
