"""The folder of a run from the log that `carry` wrote into a folder here.

Invariant: files appear whole or not at all, below the folder that was named and nowhere else; of
another run that was there nothing stays, so that a folder never holds a mixture of two.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from job.errors import JobError, OutputInUse
from job.run_folder import RunFolder, is_run_folder
from job.storage.place import Place
from job.write import write_atomic
from scripts.submitting.carry import BEGIN, END


@dataclass(frozen=True, slots=True)
class Fetched:
    """What arrived. `left`: names and sizes (bytes) of what was too much and stayed."""

    files: int
    left: dict[str, int]


def check_target(folder: Path) -> None:
    """Raise OutputInUse for a folder that holds something else than a run."""
    if folder.is_dir() and any(folder.iterdir()) and not is_run_folder(Place.of(folder)):
        raise OutputInUse(f"--fetch {folder} holds files of something else; name another folder")
    if folder.exists() and not folder.is_dir():
        raise OutputInUse(f"--fetch {folder} is a file; name a folder")


def unpack(log: str, folder: Path) -> Fetched:
    """Write what a log carries below `folder`. Raises JobError where it did not arrive whole."""
    lines = iter(log.splitlines())
    head = next((line for line in lines if line.startswith(BEGIN)), None)
    if head is None:
        raise JobError("the report could not be fetched: the cluster sent nothing")
    try:
        told = orjson.loads(head.removeprefix(BEGIN))
        packed = base64.b64decode("".join(_until_end(lines)), validate=True)
    except (orjson.JSONDecodeError, binascii.Error) as error:
        raise JobError("the report did not arrive whole; try again with --job") from error
    if hashlib.sha256(packed).hexdigest() != told["sha256"]:
        raise JobError("the report did not arrive whole; try again with --job")
    try:
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
            names = [tarfile.data_filter(entry, str(folder)).name for entry in archive]
            RunFolder(Place.of(folder)).remove_results()
            for name, entry in zip(names, archive.getmembers(), strict=True):
                file = archive.extractfile(entry)
                if file is not None:
                    write_atomic(Place.of(folder / name), file.read())
    except tarfile.TarError as error:
        raise JobError(f"what the cluster sent is no folder of a run: {error}") from error
    return Fetched(told["files"], told["left"])


def _until_end(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line == END:
            return
        yield line
