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
from collections.abc import Iterator

import orjson
from pyarrow import fs

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
    system, root = fs.FileSystem.from_uri(out) if "://" in out else (fs.LocalFileSystem(), out)
    root = root.rstrip("/")
    found = system.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    files = {one.path[len(root) + 1 :]: one.size for one in found if one.type == fs.FileType.File}
    files = {name: size for name, size in files.items() if not _hidden(name)}
    chosen, left, total = [], {}, 0
    for name in sorted(files, key=lambda name: (name not in FIRST, files[name], name)):
        if total + files[name] > MOST_BYTES:
            left[name] = files[name]
            continue
        total += files[name]
        chosen.append(name)
    packed = _pack(system, root, chosen)
    head = {"sha256": hashlib.sha256(packed).hexdigest(), "files": len(chosen), "left": left}
    yield BEGIN + orjson.dumps(head).decode()
    for start in range(0, len(packed), LINE_BYTES):
        yield base64.b64encode(packed[start : start + LINE_BYTES]).decode()
    yield END


def _hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


def _pack(system: fs.FileSystem, root: str, names: list[str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in names:
            with system.open_input_stream(f"{root}/{name}") as file:
                data = file.read()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


if __name__ == "__main__":
    for line in carry(sys.argv[1]):
        print(line)
