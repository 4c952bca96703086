"""The checkout as one archive: what the nodes get.

Invariant: what is shown is what is sent, since the archive is made once. It follows `.gitignore`
and `.rayignore`, and never holds the history, an environment or a file that usually holds keys.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from zipfile import ZipFile

from ray._private.ray_constants import (
    DASHBOARD_CLIENT_MAX_SIZE,
    get_runtime_env_default_excludes,
)
from ray._private.runtime_env.packaging import create_package

from job.errors import InputError, UsageError

MOST_BYTES = DASHBOARD_CLIENT_MAX_SIZE
"""Of an archive: more, and the head of the cluster refuses it."""
WARNING_BYTES = 20 * 2**20
"""Of an archive: more is not the code, and every node downloads it."""
NEVER = (".git", ".venv", ".env", ".env.*", "*.pem", "*.key")
SHOWN = 5
"""Of the biggest entries."""


@dataclass(frozen=True, slots=True)
class Upload:
    """An archive of the checkout. `files`: their names and sizes before compression, in bytes."""

    archive: Path
    size: int
    files: dict[str, int]

    def check_inputs(self, inputs: Sequence[str]) -> None:
        """Raise InputError for a file (relative to the checkout) that is not in the archive."""
        for path in inputs:
            pattern = path.removeprefix("./")
            inside = pattern == "." or any(_holds(pattern, name) for name in self.files)
            if not inside:
                raise InputError(
                    f"{path} is not uploaded: there is no such file in the checkout, or .gitignore "
                    "leaves it out. Take it out of there, or name an absolute path that all nodes "
                    "see, or a URI"
                )

    def check_size(self) -> None:
        """Raise UsageError if it is more than a cluster takes."""
        if self.size >= MOST_BYTES:
            biggest = ", ".join(f"{name} ({megabytes(size)})" for name, size in self.biggest())
            raise UsageError(
                f"the checkout is {megabytes(self.size)} when packed, and a cluster takes less "
                f"than {megabytes(MOST_BYTES)}. Biggest: {biggest}. List what the run does not "
                "need in .gitignore or .rayignore; keep inputs on storage that all nodes see"
            )

    def lines(self) -> Iterator[str]:
        """What is sent, for a person."""
        yield f"upload: {len(self.files):,} files of this checkout, {megabytes(self.size)} packed"
        for name, size in self.biggest():
            yield f"  {megabytes(size):>9}  {name}"
        if self.size >= WARNING_BYTES:
            yield (
                "  That is a lot: inputs belong on storage that all nodes see, everything else "
                "that the run does not need in .gitignore or .rayignore"
            )

    def biggest(self) -> list[tuple[str, int]]:
        """The entries of the checkout that weigh most."""
        weights: Counter[str] = Counter()
        for name, size in self.files.items():
            top, slash, _ = name.partition("/")
            weights[top + slash] += size
        return weights.most_common(SHOWN)


def pack_checkout(root: Path, into: Path) -> Upload:
    """Pack the checkout at `root` into an archive in the folder `into`."""
    archive = into / "checkout.zip"
    create_package(
        str(root),
        archive,
        include_gitignore=True,
        excludes=[*get_runtime_env_default_excludes(), *NEVER],
        logger=_silent(),
    )
    with ZipFile(archive) as opened:
        files = {info.filename: info.file_size for info in opened.infolist() if not info.is_dir()}
    return Upload(archive, archive.stat().st_size, files)


def megabytes(size: int) -> str:
    """A size for a person."""
    return f"{size / 1e6:,.1f} MB"


def _holds(pattern: str, name: str) -> bool:
    return name == pattern or name.startswith(f"{pattern}/") or fnmatch(name, pattern)


def _silent() -> logging.Logger:
    logger = logging.getLogger("fupan.upload")
    logger.setLevel(logging.CRITICAL)
    return logger
