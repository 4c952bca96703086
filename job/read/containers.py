"""Logs whose lines carry the name of their stream: containers, pods, processes, threads.

Invariant: a line that goes on (an indented line, a trace, in a log with times any line without
one) belongs to the last line of its own stream, whatever other streams wrote in between; what is
taken from the lines behind the first of a record is their prefix alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from job import times
from job.read.encoding import Encoding, repair
from job.read.lines import Block
from job.read.rejections import too_long
from job.read.text_log import looks_continued, opens_exception, strip_ansi
from job.read.weave import Line
from job.records import Raw, Rejected

Woven = Literal["compose", "kubectl", "cri", "docker", "tagged", "chat"]

_LEVELS = "TRACE|DEBUG|VERBOSE|INFO|NOTICE|WARN(?:ING)?|ERROR|ERR|CRIT(?:ICAL)?|FATAL|SEVERE|PANIC"
_LEVEL = re.compile(rf"(?:{_LEVELS})", re.IGNORECASE)
_TIME = (
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
    r"|\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,6})"
)
_COMPOSE = re.compile(
    r"(?P<container>(?=[0-9.-]{0,62}[A-Za-z])[A-Za-z0-9][\w.-]{0,62}) *(?P<bar>\|) ?(?P<log>.*)"
)
_KUBECTL = re.compile(r"\[pod/(?P<pod>[\w.-]{1,253})/(?P<container>[\w.-]{1,63})\] ?(?P<log>.*)")
_CRI = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) "
    r"(?P<stream>stdout|stderr) (?P<tag>[FP])(?: (?P<log>.*))?"
)
_TAGGED = re.compile(
    rf"\[{_TIME}: (?P<celery>[^\]\n]{{1,80}})\] (?P<a>.*)"
    rf"|{_TIME} (?P<syslog>[\w.-]{{1,80}} [\w./-]{{1,60}}(?:\[\d{{1,9}}\])?"
    r"|[\w./-]{1,60}\[[\w.-]{1,40}\]): (?P<b>.*)"
    rf"|{_TIME} +(?P<logcat>\d{{1,7}} +\d{{1,7}} [VDIWEF] [^:\n]{{1,60}}): (?P<c>.*)"
    rf"|\[?{_TIME}\]? (?P<columns>(?:(?:\[[^\]\n]{{1,80}}\]|(?:{_LEVELS})|\d{{1,7}}):? )+)(?P<d>.*)"
)
_MESSAGES = "abcd"
_FRAME = re.compile(
    r"[ \t]+(?:at [\w$.<]|File \"|\.\.\. \d+ )|(?:Caused by|Suppressed): |\.\.\. \d+ more"
)
"""A line of a trace. Behind the head of a log line an indent alone says nothing: levels are padded
to one width, kernels and scripts indent what they list."""
_WOVEN_SHARE = 0.9
_TIMED_SHARE = 0.2
"""Of the lines of a stream that do not look continued: from there on a time opens its records."""
_MOST_STREAMS = 1000
_SAMPLE = 1000
_DOCKER_PART = 16_000
"""Docker cuts what is written at 16 KiB; only so long a line without its end goes on."""


class Prefixed(NamedTuple):
    """A line without its prefix. `fields`: what the prefix says, for the record."""

    stream: str
    said: str
    fields: Mapping[str, Any]
    ends: bool = True


def _compose(line: str) -> Prefixed | None:
    match = _COMPOSE.match(line)
    if match is None or _LEVEL.fullmatch(match["container"]):
        return None
    return Prefixed(match["container"], match["log"], {"container": match["container"]})


def _kubectl(line: str) -> Prefixed | None:
    match = _KUBECTL.match(line)
    if match is None:
        return None
    fields = {"pod": match["pod"], "container": match["container"]}
    return Prefixed("/".join(fields.values()), match["log"], fields)


def _cri(line: str) -> Prefixed | None:
    match = _CRI.fullmatch(line)
    if match is None:
        return None
    fields = {"time": match["time"], "stream": match["stream"]}
    return Prefixed(match["stream"], match["log"] or "", fields, match["tag"] == "F")


def _tagged(line: str) -> Prefixed | None:
    match = _TAGGED.match(line)
    if match is None:
        return None
    tag = match["celery"] or match["syslog"] or match["logcat"] or match["columns"]
    said = next(found for name in _MESSAGES if (found := match[name]) is not None)
    if match["logcat"]:
        tag = re.sub(r" [VDIWEF] ", " ", tag)
    return Prefixed(_LEVEL.sub("", tag), said, {})


_READERS: dict[str, Callable[[str], Prefixed | None]] = {
    "compose": _compose,
    "kubectl": _kubectl,
    "cri": _cri,
    "tagged": _tagged,
}


def find_woven(lines: Sequence[str]) -> Woven | None:
    """How the lines of a text name their streams; None where they do not, or where nothing is
    woven: lines with a time of their own are records unless one of them goes on with another."""
    lines = [strip_ansi(line).rstrip("\r") for line in lines[:_SAMPLE]]
    kinds: tuple[Woven, ...] = ("cri", "kubectl", "compose", "tagged")
    for kind in kinds:
        found = [_READERS[kind](line) for line in lines]
        prefixed = [line for line in found if line is not None]
        if not prefixed or len(prefixed) < _WOVEN_SHARE * len(lines):
            continue
        if kind == "compose" and not _are_containers(lines, prefixed):
            continue
        if kind == "tagged" and not any(_FRAME.match(line.said) for line in prefixed):
            continue
        return kind
    return None


def _are_containers(lines: Sequence[str], prefixed: Sequence[Prefixed]) -> bool:
    """Compose numbers its containers and puts the bars in one column; a table does neither."""
    names = Counter(line.stream for line in prefixed)
    columns = Counter(line.find("|") for line in lines if "|" in line)
    aligned = columns.most_common(1)[0][1] >= _WOVEN_SHARE * len(lines)
    spaced = all(line[: line.find("|")].endswith(" ") for line in lines if "|" in line)
    if all(re.search(r"[-_]\d{1,3}\Z", name) for name in names):
        return spaced
    return aligned and spaced and len(lines) >= 2 * len(names)


def is_docker(value: Any) -> bool:
    """Whether a JSON line is of Docker's json-file log, or of what collects it."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("log"), str)
        and value.get("stream") in ("stdout", "stderr")
    )


def timed_streams(woven: Woven, rows: Iterable[Any]) -> tuple[str, ...]:
    """The streams in which records open with times, from lines of text or Docker's objects."""
    opening: Counter[str] = Counter()
    timed: Counter[str] = Counter()
    for row in rows:
        line = _docker(row) if woven == "docker" else _READERS[woven](strip_ansi(row))
        if line and line.said.strip() and not looks_continued(line.said):
            opening[line.stream] += 1
            timed[line.stream] += times.starts_record(line.said)
    return tuple(
        name
        for name, count in opening.most_common(_MOST_STREAMS)
        if timed[name] >= max(_TIMED_SHARE * count, 1)
    )


def _docker(value: Any) -> Prefixed | None:
    if not is_docker(value):
        return None
    said = value["log"]
    pod = value.get("kubernetes")
    names = [value["stream"], value.get("container_id"), value.get("container_name")]
    if isinstance(pod, dict):
        names += [pod.get("pod_name"), pod.get("container_name")]
    stream = "/".join(name for name in names if isinstance(name, str))
    ends = said.endswith("\n") or len(said) < _DOCKER_PART
    return Prefixed(stream, said.removesuffix("\n").removesuffix("\r"), value, ends)


def docker_lines(rows: Iterable[Raw | Rejected]) -> Iterator[Line | Rejected]:
    """JSON lines with their streams; what is none of Docker's is a stream of its own."""
    for row in rows:
        if isinstance(row, Rejected):
            yield row
        elif found := _docker(row.value):
            yield Line(row, found.stream, found.said, found.ends)
        else:
            yield Line(row, f"\0{row.position}")


def prefixed_lines(
    blocks: Iterable[Block], source: str, encoding: Encoding, woven: Woven
) -> Iterator[Line | Rejected]:
    """The lines of a text with their streams, without those that are blank."""
    read = _READERS[woven]
    for block in blocks:
        if block.too_long:
            yield too_long(source, block.position, encoding.decode(block.data)[0])
            continue
        text, _ = encoding.decode(block.data)
        position = block.position
        for line in text.split("\n"):
            if line and not line.isspace():
                yield _line(line.rstrip("\r"), source, position, encoding, read, woven)
            position += encoding.byte_length(line) + encoding.unit


def _line(
    line: str,
    source: str,
    position: int,
    encoding: Encoding,
    read: Callable[[str], Prefixed | None],
    woven: Woven,
) -> Line:
    flags = []
    if encoding.holds_bad_bytes(line):
        flags.append("bad_bytes")
    if "\0" in line:
        flags.append("nul")
    line = repair(line)
    if "\x1b" in line and (stripped := strip_ansi(line)) != line:
        flags.append("ansi")
        line = stripped
    found = read(line)
    value: Any = line if found is None or woven == "tagged" else {**found.fields, "log": found.said}
    raw = Raw(source, position, value, "text", tuple(flags))
    if found is None:
        # What says of itself that it begins (of compose: "web-1 exited with code 1").
        alone = times.starts_record(line) if woven == "tagged" else not looks_continued(line)
        return Line(raw, f"\0{position}" if alone else None, line)
    return Line(raw, found.stream, found.said, found.ends)


@dataclass(frozen=True, slots=True)
class Continuing:
    """Whether a line goes on with the one before it in its stream. `timed`: the streams in which
    what opens with no time does; `tagged`: each line has a head of its own."""

    timed: frozenset[str]
    tagged: bool = False

    def __call__(self, before: Line, line: Line) -> bool:
        if self.tagged:
            if _FRAME.match(line.said):
                return True
            traced = _FRAME.match(before.said) or before.said.startswith(("    ", "Traceback "))
            return bool(traced) and (line.said.startswith("    ") or opens_exception(line.said))
        if not before.ends or not line.said.strip():
            return True
        if line.stream in self.timed:
            return not times.starts_record(line.said)
        if opens_exception(line.said):
            return before.said.startswith((" ", "\t", "Traceback "))
        return looks_continued(line.said)


def join_lines(lines: list[Line]) -> Raw:
    """The record of lines of one stream: the first as it is, of the others what they say."""
    first = lines[0].raw
    if len(lines) == 1 and not isinstance(first.value, dict):
        return first
    said = lines[0].said
    for before, line in pairwise(lines):
        said += ("\n" if before.ends else "") + line.said
    flags = tuple(sorted({flag for line in lines for flag in line.raw.flags}))
    if isinstance(first.value, dict):
        return replace(first, value={**first.value, "log": said.rstrip()}, flags=flags)
    head = str(first.value).removesuffix(lines[0].said)
    return replace(first, value=(head + said).rstrip(), flags=flags)
