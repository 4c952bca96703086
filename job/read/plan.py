"""Inputs -> what each file is, how it is read, and the slices in which it is.

Invariant: planning looks at a bounded part of each file (its beginning, and a few windows further
on), except that a large table is scanned once for places where it may be cut; the same inputs give
the same plan on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, tzinfo
from itertools import islice, pairwise

from job import times
from job.errors import InputError
from job.read.chats import NO_NAMES, ChatNames
from job.read.dialect import heading_length, row_cuts
from job.read.encoding import Encoding
from job.read.formats import LINE_FORMATS, Format, Sample, find_format
from job.read.inputs import Found, find_files
from job.read.look import Look, look_at
from job.read.slices import Slice, read_slice
from job.read.streams import ByteStream, Compression
from job.records import Raw, Rejected
from job.storage.place import Place
from job.storage.store import store_words

SLICE_BYTES = 4 << 20
_SAMPLE_RECORDS = 50
_OPENERS = 16
"""Files looked at at once: on object storage each look is a few round trips."""


@dataclass(frozen=True, slots=True)
class FilePlan:
    """A file as it was understood.

    `source`: its name in records and reports. `input`: index of the input it was found under.
    `size`: bytes on disk. `fingerprint`: of its size, beginning and end. `problem`: why it cannot
    be read, or None.
    """

    source: str
    location: Place
    input: int
    size: int
    compression: Compression
    encoding: Encoding
    format: Format
    slices: tuple[Slice, ...]
    fingerprint: str
    problem: str | None = None

    @property
    def sample(self) -> tuple[Raw | Rejected, ...]:
        """The first records of the file, read anew each time."""
        return tuple(islice(read_slice(self.slices[0]), _SAMPLE_RECORDS)) if self.slices else ()


@dataclass(frozen=True, slots=True)
class Plan:
    """All files of a run. `ignored`: entries below the inputs that were passed by: hidden ones,
    those that are no files, and what runs have written."""

    files: tuple[FilePlan, ...]
    ignored: int

    @property
    def slices(self) -> tuple[Slice, ...]:
        return tuple(part for file in self.files for part in file.slices)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.size for file in self.files)

    @property
    def fingerprint(self) -> str:
        """The same for the same names and contents: tells whether a rerun has the same inputs."""
        lines = [f"{file.source}\0{file.fingerprint}" for file in self.files]
        return hashlib.blake2b("\n".join(lines).encode()).hexdigest()[:32]


def plan_inputs(
    inputs: Sequence[str],
    *,
    reference: date,
    zone: tzinfo,
    slice_bytes: int = SLICE_BYTES,
    chats: Callable[[str, int], ChatNames] = lambda name, index: NO_NAMES,
    written: Iterable[Place] = (),
) -> Plan:
    """How the files below the inputs (paths, folders, globs, URIs) are read.

    `reference` and `zone` complete times that are written without a date or an offset.
    `slice_bytes`: about how large a slice becomes. `chats`: by a file's name and the index of
    its input, what is known of the chats in it. `written`: files and folders that the run itself
    writes and must not read. Raises InputError for an input that holds no file, and for one on a
    network that fails.
    """
    found, ignored = find_files(inputs, written)

    def is_time(text: str) -> bool:
        return times.parse(text, reference, zone) is not None

    def plan_file(file: Found) -> FilePlan:
        return _plan_file(file, is_time, slice_bytes, chats(file.name, file.input))

    with ThreadPoolExecutor(_OPENERS) as pool:
        files = pool.map(plan_file, found)
        return Plan(tuple(files), ignored)


def _plan_file(
    file: Found, is_time: Callable[[str], bool], slice_bytes: int, names: ChatNames
) -> FilePlan:
    problem, form, cuts = None, Format("text"), [0, None]
    look = Look()
    try:
        look = look_at(file.location, file.size)
        sample = Sample(file.name, look.text, look.complete, look.elsewhere)
        form = find_format(sample, is_time, names)
        cuts = _cuts(file, look, form, slice_bytes)
        problem = look.damage
    except OSError as error:
        if not file.location.is_lasting(error):
            why = store_words(error) or error
            raise InputError(f"cannot read the input file {file.name!r}: {why}") from error
        # The reader meets the same error and rejects the file by it.
        problem = str(error)
    ends = list(pairwise(cuts))
    slices = tuple(
        Slice(
            file.name,
            file.location,
            index,
            start or 0,
            end,
            file.size if end is None else end - (start or 0),
            look.compression,
            look.encoding,
            form,
        )
        for index, (start, end) in enumerate(ends)
    )
    return FilePlan(
        file.name,
        file.location,
        file.input,
        file.size,
        look.compression,
        look.encoding,
        form,
        slices,
        look.fingerprint,
        problem,
    )


def _cuts(file: Found, look: Look, form: Format, slice_bytes: int) -> list[int | None]:
    """Where the slices of a file begin and end; None at the end of one whose length is unknown or
    of no matter."""
    if form.name == "empty" and not look.damage:
        return [0]
    if look.compression != "none" or look.encoding.unit > 1:
        return [0, None]
    begin = look.encoding.bom
    length = file.size - begin
    if form.dialect and form.woven:
        return [0, file.size]
    if form.name in LINE_FORMATS or (form.dialect and not form.dialect.quoted):
        count = max(min(round(length / slice_bytes), length), 1)
        inner = [begin + length * n // count for n in range(1, count)]
    elif form.dialect and look.encoding.codec == "utf-8" and length >= 2 * slice_bytes:
        chunks = ByteStream(file.location, "none", begin)
        inner = row_cuts(chunks, begin, form.dialect.delimiter, slice_bytes)
    else:
        return [0, None if form.dialect is None else file.size]
    if form.dialect:
        # The slice that begins the file knows the heading.
        data = begin + look.encoding.byte_length(
            look.text[: heading_length(look.text, form.dialect)]
        )
        inner = [cut for cut in inner if cut >= data]
    return [0, *(cut for cut in inner if cut < file.size), file.size]
