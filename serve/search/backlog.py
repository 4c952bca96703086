"""What is known of texts without vectors from one portion of them to the next.

Invariant: nothing is known any more of a segment that was made anew, and nothing of vectors of
another space.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from serve.search.holders import Holders
from serve.search.leftovers import whole_in
from serve.search.missing import Missing
from serve.search.vectors import folder_of, parts_in


class Backlog:
    """Of the segments in a folder. `space`: the id of that of the vectors."""

    def __init__(self, folder: Path, space: str) -> None:
        self._folder = folder
        self._space = space
        self._working: tuple[str, Missing] | None = None
        self._holders: Holders | None = None

    def missing_of(self, segment: str) -> Missing:
        """What a segment has no vectors of, with those that others have taken over. Raises one of
        READ_ERRORS."""
        if self._working is None or self._working[0] != segment:
            if self._holders is None:
                # Also those that nothing names any more: a run's, of before it was made again.
                there = whole_in(self._folder)
                self._holders = Holders(
                    each for each in there if parts_in(folder_of(each, self._space))
                )
            missing = Missing.of(self._folder / segment, self._space)
            missing.recall(self._holders)
            self._working = segment, missing
        return self._working[1]

    def is_of(self, missing: Missing) -> bool:
        """Whether `missing` was given last, and its segment is as it was then."""
        return self._working is not None and self._working[1] is missing

    def has_some(self, segment: str) -> None:
        """Vectors of a segment were written."""
        if self._holders is not None:
            self._holders.add(self._folder / segment)

    def stop(self) -> None:
        """Look at the segment anew that was worked on."""
        self._working = None

    def made_anew(self, segment: str) -> None:
        """Look at a segment anew."""
        if self._working is not None and self._working[0] == segment:
            self.stop()

    def keep(self, segments: Collection[str]) -> None:
        """Work on no other than `segments`."""
        if self._working is not None and self._working[0] not in segments:
            self.stop()

    def forget(self) -> None:
        """A segment has gone, or will: look for those that have vectors anew."""
        self._holders = None
