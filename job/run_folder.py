"""The folder a run leaves: who holds it, what is in it, whether a run may go on in it.

Invariant: at most one live process holds the folder (a file lock, which ends with the process that
took it); nothing is removed from it that a run did not put there.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from job.errors import OutputInUse
from job.write import write_json

WORK = ".work"
"""Files of a run under way; removed when it ends well."""
OWN_FILES = (
    "report.html",
    "report.md",
    "report.json",
    "themes.parquet",
    "review.jsonl",
    "failed.jsonl",
    "rejected.jsonl",
    "evidence.csv",
    "ledger.json",
    "timing.json",
    "run.json",
)
"""Everything a run writes beside `results/` (DESIGN 6)."""


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
        """Hold the folder. Raises OutputInUse if a live run does."""
        self.root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
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

        Raises OutputInUse if the folder holds something else and `overwrite` is not set.
        """
        held = self._held_identity()
        same: bool = held == orjson.loads(orjson.dumps(identity))
        filled = any(path.name != ".lock" for path in self.root.iterdir())
        if filled and not same and not overwrite:
            what = "a run with other inputs or settings" if held else "files of something else"
            raise OutputInUse(
                f"{self.root} holds {what}; name another --out, or replace it with --overwrite"
            )
        if filled and not same:
            for name in OWN_FILES:
                (self.root / name).unlink(missing_ok=True)
            for part in self.result_files():
                part.unlink()
        shutil.rmtree(self.work, ignore_errors=True)
        for folder in (self.manifests, self.rejected, self.members, self.asked, self.joined):
            folder.mkdir(parents=True)
        write_json(self.work / "identity.json", identity)
        return same

    def finish(self) -> None:
        """Remove what only the run itself needed."""
        shutil.rmtree(self.work)

    def _held_identity(self) -> Any:
        """The identity of the run in the folder, finished or not; None if there is none."""
        for path, key in ((self.root / "run.json", "identity"), (self.work / "identity.json", "")):
            try:
                data = orjson.loads(path.read_bytes())
            except (OSError, orjson.JSONDecodeError):
                continue
            return data.get(key) if key else data
        return None
