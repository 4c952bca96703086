"""The folder a run leaves: what is in it, whether a run may go on in it.

Invariant: nothing is removed from it that a run did not put there. What the folder is for is
written first and removed last, so that a run that was killed anywhere finds itself again.
"""

from __future__ import annotations

import errno
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from pyarrow import fs

from job.errors import OutputInUse, UsageError
from job.storage.hold import Check, hold
from job.storage.lease import LOCK
from job.storage.place import Place
from job.storage.store import store_words
from job.write import write_json

WORK = ".work"
"""Files of a run under way; removed when it ends well."""
IDENTITY = ".fupan-run.json"
"""The inputs and settings of the run under way."""
FRESH = ".fupan-fresh.json"
"""Since when the run of `--fresh` in the folder asks anew. A finished one leaves it too."""
SPENDER = ".fupan-spend.json"
"""Under which name the run spends. It stays: the same command may go on spending."""
CANARY = "canary.json"
"""The verdict of the canary."""
COMPARISON = "compare.json"
"""What `fupan compare --out` leaves: a run may begin beside it, and leaves it alone."""
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
    CANARY,
    "ledger.json",
    "timing.json",
    "run.json",
)
"""Everything a run writes beside `results/` (DESIGN 6); what tells of it stands last."""
_UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]{8}\.part")
"""What a killed run leaves of a file that was to appear (`job.write.appearing`)."""


def is_run_folder(place: Place) -> bool:
    """Whether a run has written, or is writing, into `place`."""
    looks = Place.look_at([place / name for name in (IDENTITY, "run.json", "ledger.json")])
    begun, *finished = (look.type == fs.FileType.File for look in looks)
    return begun or all(finished)


@dataclass(frozen=True, slots=True)
class Before:
    """What an earlier run left in the folder, for a run that begins. `same`: it was of the same
    inputs and settings; `unfinished`: it also ended with no report, or with a partial one; `kept`:
    the new run goes on with what it spent and with its canary; `since`: where a run of `--fresh`
    goes on, since when (seconds since the epoch) it asks anew."""

    same: bool
    unfinished: bool
    kept: bool
    since: float | None


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The layout of `--out`."""

    root: Place

    @property
    def results(self) -> Place:
        """Where the finished results are."""
        return self.root / "results"

    @property
    def work(self) -> Place:
        """Where the unfinished ones are."""
        return self.root / WORK

    @property
    def manifests(self) -> Place:
        """One file of counts per slice read."""
        return self.work / "manifests"

    @property
    def rejected(self) -> Place:
        """One file per slice that had rejections."""
        return self.work / "rejected"

    @property
    def members(self) -> Place:
        """Folded records, by the share of digests they belong to."""
        return self.work / "members"

    @property
    def asked(self) -> Place:
        """Results of the records that were asked."""
        return self.work / "asked"

    @property
    def joined(self) -> Place:
        """Results of the folded ones."""
        return self.work / "joined"

    def result_files(self) -> list[Place]:
        """The finished result files, in order."""
        return self.results.glob("part-*.parquet")

    @contextmanager
    def locked(self) -> Iterator[Check]:
        """Hold the folder; what is given raises where it no longer is held. Raises OutputInUse if a
        live run holds it, UsageError where nothing can be written."""
        with ExitStack() as stack:
            with _writable(self.root):
                check = stack.enter_context(hold(self.root))
            yield check

    def begin(
        self,
        identity: dict[str, Any],
        overwrite: bool,
        fresh: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> bool:
        """Make the folder ready for a run of `identity` (inputs and settings); True if an earlier
        run of the same is gone on with. `fresh`: it asks anew and spends anew, unless one that did
        so has not ended yet, or was stopped: that one goes on with what it paid for. `clock`:
        seconds since the epoch.

        Raises OutputInUse if the folder holds something else and `overwrite` is not set, and
        UsageError where nothing can be written.
        """
        before = self.before(identity, fresh)
        same = before.same
        with _writable(self.root):
            begun, finished = self._held(self.root / IDENTITY), self._finished()
            names = (place.name for place in self.root.iterdir())
            filled = any(not (name == COMPARISON or _is_hidden_own(name)) for name in names)
        if filled and not same and not overwrite:
            held = begun is not None or finished is not None
            what = "a run with other inputs or settings" if held else "files of something else"
            raise OutputInUse(
                f"{self.root} holds {what}; name another --out, or replace it with --overwrite"
            )
        with _writable(self.root):
            if not before.kept:
                for name in (SPENDER, FRESH, CANARY):
                    (self.root / name).unlink()
                if fresh:
                    write_json(self.root / FRESH, {"since": clock()})
            elif not before.unfinished:
                (self.root / FRESH).unlink()
            write_json(self.root / IDENTITY, identity)
            if not same or finished not in (None, _as_held(identity)):
                self.remove_results()
            self._remove_unfinished()
        return same

    def before(self, identity: dict[str, Any], fresh: bool) -> Before:
        """What a run of `identity` that begins now (`fresh`: with `--fresh`) finds; nothing is
        changed. Raises UsageError where the folder cannot be read."""
        wanted = _as_held(identity)
        with _writable(self.root):
            begun, finished = self._held(self.root / IDENTITY), self._finished()
            same = wanted in (begun, finished)
            unfinished = same and self._is_unfinished(begun, wanted)
            since = self.fresh_since() if fresh and unfinished else None
        return Before(same, unfinished, same and (not fresh or since is not None), since)

    def fresh_since(self) -> float | None:
        """Since when (seconds since the epoch) the run in the folder asks anew; None if it recalls
        whatever is known."""
        held = self._held(self.root / FRESH)
        since = held.get("since") if isinstance(held, dict) else None
        return since if isinstance(since, float) else None

    def spender(self, journal: str) -> tuple[str, str]:
        """Under which name the run spends, and in which journal that was first written down: the
        same for all commands that go on in the folder. Raises UsageError where it cannot be
        written."""
        held = self._held(self.root / SPENDER)
        if not isinstance(held, dict) or not {"run", "journal"} <= held.keys():
            held = {"run": secrets.token_hex(16), "journal": journal}
            with _writable(self.root):
                write_json(self.root / SPENDER, held)
        return str(held["run"]), str(held["journal"])

    def finish(self) -> None:
        """Remove what only the run itself needed."""
        self.work.rmtree()
        (self.root / IDENTITY).unlink()

    def _is_unfinished(self, begun: Any, wanted: Any) -> bool:
        """Whether a run of `wanted` was ended by no report, or by a partial one. `begun`: what the
        run under way is."""
        if begun is not None:
            return bool(begun == wanted)
        return self._held(self.root / "run.json").get("stopped") is not None

    def _finished(self) -> Any:
        """The identity of the finished run in the folder; None if there is none."""
        held = self._held(self.root / "run.json")
        return held.get("identity") if isinstance(held, dict) else None

    def _held(self, place: Place) -> Any:
        try:
            return orjson.loads(place.read_bytes())
        except (FileNotFoundError, IsADirectoryError, orjson.JSONDecodeError):
            return None

    def remove_results(self) -> None:
        """Remove what another run left, that which tells of it last."""
        for place in (*self.result_files(), *(self.root / name for name in OWN_FILES)):
            place.unlink()

    def _remove_unfinished(self) -> None:
        self.work.rmtree()
        for folder in (self.root, self.results):
            for place in folder.glob(".*.part"):
                if _UNFINISHED.fullmatch(place.name):
                    place.unlink()


def _as_held(identity: dict[str, Any]) -> Any:
    """`identity` as it is read back."""
    return orjson.loads(orjson.dumps(identity))


def _is_hidden_own(name: str) -> bool:
    own = name in (WORK, IDENTITY, FRESH, SPENDER) or name.startswith(LOCK)
    return own or _UNFINISHED.fullmatch(name) is not None


@contextmanager
def _writable(root: Place) -> Iterator[None]:
    """A folder that cannot be written is the user's to change; a full disk is not a wrong --out."""
    try:
        yield
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"--out {root} is a file, or lies below one: name a folder") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        why = store_words(error) or error.strerror or str(error)
        raise UsageError(f"cannot write to --out {root}: {why}") from error
