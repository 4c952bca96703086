"""The folder a run leaves: who holds it, what is in it, whether a run may go on in it.

Invariant: at most one live process holds the folder (a file lock, which ends with the process that
took it); nothing is removed from it that a run did not put there. What the folder is for is
written first and removed last, so that a run that was killed anywhere finds itself again.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from job.errors import OutputInUse, UsageError
from job.write import write_json

WORK = ".work"
"""Files of a run under way; removed when it ends well."""
IDENTITY = ".fupan-run.json"
"""The inputs and settings of the run under way."""
LOCK = ".lock"
OWN_FILES = (
    "report.html",
    "report.md",
    "report.json",
    "themes.parquet",
    "review.jsonl",
    "failed.jsonl",
    "rejected.jsonl",
    "evidence.csv",
    "baseline.json",
    "ledger.json",
    "timing.json",
    "run.json",
)
"""Everything a run writes beside `results/` (DESIGN 6); what tells of it stands last."""
_UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]{8}\.part")
"""What a killed run leaves of a file that was to appear (`job.write.appearing`)."""


def is_run_folder(path: Path) -> bool:
    """Whether a run has written, or is writing, into `path`."""
    return (path / IDENTITY).is_file() or all(
        (path / name).is_file() for name in ("run.json", "ledger.json")
    )


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The layout of `--out`."""

    root: Path

    @property
    def results(self) -> Path:
        """Where the finished results are."""
        return self.root / "results"

    @property
    def work(self) -> Path:
        """Where the unfinished ones are."""
        return self.root / WORK

    @property
    def manifests(self) -> Path:
        """One file of counts per slice read."""
        return self.work / "manifests"

    @property
    def rejected(self) -> Path:
        """One file per slice that had rejections."""
        return self.work / "rejected"

    @property
    def members(self) -> Path:
        """Folded records, by the share of digests they belong to."""
        return self.work / "members"

    @property
    def asked(self) -> Path:
        """Results of the records that were asked."""
        return self.work / "asked"

    @property
    def joined(self) -> Path:
        """Results of the folded ones."""
        return self.work / "joined"

    def result_files(self) -> list[Path]:
        """The finished result files, in order."""
        return sorted(self.results.glob("part-*.parquet"))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder. Raises OutputInUse if a live run does, UsageError where nothing can be
        written."""
        with _writable(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise OutputInUse(
                    f"{self.root} is in use by another run; wait for it or name another --out"
                ) from error
            yield
        finally:
            os.close(descriptor)

    def begin(self, identity: dict[str, Any], overwrite: bool) -> bool:
        """Make the folder ready for a run of `identity` (inputs and settings); True if an earlier
        run of the same is gone on with.

        Raises OutputInUse if the folder holds something else and `overwrite` is not set, and
        UsageError where nothing can be written.
        """
        wanted = orjson.loads(orjson.dumps(identity))
        begun, finished = self._held(self.root / IDENTITY), self._finished()
        same: bool = wanted in (begun, finished)
        filled = any(not _is_hidden_own(path.name) for path in self.root.iterdir())
        if filled and not same and not overwrite:
            held = begun is not None or finished is not None
            what = "a run with other inputs or settings" if held else "files of something else"
            raise OutputInUse(
                f"{self.root} holds {what}; name another --out, or replace it with --overwrite"
            )
        with _writable(self.root):
            write_json(self.root / IDENTITY, identity)
            if not same or finished not in (None, wanted):
                self._remove_results()
            self._remove_unfinished()
            for folder in (self.manifests, self.rejected, self.members, self.asked, self.joined):
                folder.mkdir(parents=True)
        return same

    def finish(self) -> None:
        """Remove what only the run itself needed."""
        shutil.rmtree(self.work)
        (self.root / IDENTITY).unlink()

    def _finished(self) -> Any:
        """The identity of the finished run in the folder; None if there is none."""
        held = self._held(self.root / "run.json")
        return held.get("identity") if isinstance(held, dict) else None

    def _held(self, path: Path) -> Any:
        try:
            return orjson.loads(path.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            return None

    def _remove_results(self) -> None:
        """Remove what another run left, that which tells of it last."""
        for path in (*self.result_files(), *(self.root / name for name in OWN_FILES)):
            path.unlink(missing_ok=True)

    def _remove_unfinished(self) -> None:
        if self.work.exists():
            shutil.rmtree(self.work)
        for folder in (self.root, self.results):
            for path in folder.glob(".*.part"):
                if _UNFINISHED.fullmatch(path.name):
                    path.unlink()


def _is_hidden_own(name: str) -> bool:
    return name in (LOCK, WORK, IDENTITY) or _UNFINISHED.fullmatch(name) is not None


@contextmanager
def _writable(root: Path) -> Iterator[None]:
    """A folder that cannot be written is the user's to change; a full disk is not a wrong --out."""
    try:
        yield
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"--out {root} is a file, or lies below one: name a folder") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise UsageError(f"cannot write to --out {root}: {error.strerror}") from error
