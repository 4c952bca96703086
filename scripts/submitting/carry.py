"""Runs on the cluster: writes the folder of a run into the job's log, so that it can be fetched
through the one port that is reachable: `python -m scripts.submitting.carry OUT`.

Invariant: what arrives is what was there, or it is not taken: the archive is named by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import io
import sys
import tarfile
from collections.abc import Iterator, Mapping

import orjson

from job.storage.place import Place

BEGIN = "FUPAN-CARRY "
END = "FUPAN-CARRIED"
LINE_BYTES = 3 * 2**14
"""Of the archive in one line of the log."""
MOST_BYTES = 48 * 2**20
"""Of files before compression. A log is held in memory on its way; what does not fit stays where it
is, the results of a big day above all."""
FIRST = ("report.html", "report.md", "report.json", "ledger.json", "run.json", "timing.json")
"""Go before all others, which go by size, smallest first."""


def carry(out: str) -> Iterator[str]:
    """The lines that hold the folder `out` (a path or a URI)."""
    files = {name: (place, place.look().size) for name, place in _below(Place.of(out), "")}
    chosen: dict[str, Place] = {}
    left: dict[str, int] = {}
    total = 0
    for name in sorted(files, key=lambda name: (name not in FIRST, files[name][1], name)):
        place, size = files[name]
        if total + size > MOST_BYTES:
            left[name] = size
            continue
        total += size
        chosen[name] = place
    packed = _pack(chosen)
    head = {"sha256": hashlib.sha256(packed).hexdigest(), "files": len(chosen), "left": left}
    yield BEGIN + orjson.dumps(head).decode()
    for start in range(0, len(packed), LINE_BYTES):
        yield base64.b64encode(packed[start : start + LINE_BYTES]).decode()
    yield END


def _below(folder: Place, prefix: str) -> Iterator[tuple[str, Place]]:
    """The files below a folder by their names in it, hidden ones left out."""
    for place in folder.iterdir():
        if place.name.startswith("."):
            continue
        if place.is_dir():
            yield from _below(place, f"{prefix}{place.name}/")
        else:
            yield f"{prefix}{place.name}", place


def _pack(files: Mapping[str, Place]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, place in files.items():
            data = place.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


if __name__ == "__main__":
    for line in carry(sys.argv[1]):
        print(line)
