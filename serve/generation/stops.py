"""Text as it may be shown: up to the first stop string, and never a part of one.

Invariant: what was given out, taken together, is a prefix of the text that holds no stop string;
what is held back is the shortest end that may yet become one.
"""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """Watches one stream's text. `stops`: non-empty strings."""

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self._stops = tuple(stops)
        self._held = ""

    def feed(self, text: str) -> tuple[str, bool]:
        """What of the text so far may be shown now, and whether a stop string was met."""
        self._held += text
        found = [at for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if found:
            shown, self._held = self._held[: min(found)], ""
            return shown, True
        keep = max((self._begun(stop) for stop in self._stops), default=0)
        ready = len(self._held) - keep
        shown, self._held = self._held[:ready], self._held[ready:]
        return shown, False

    def rest(self) -> str:
        """What was held back, once nothing more comes."""
        rest, self._held = self._held, ""
        return rest

    def _begun(self, stop: str) -> int:
        """Characters of `stop` with which the held text ends."""
        longest = min(len(stop) - 1, len(self._held))
        sizes = range(longest, 0, -1)
        return next((size for size in sizes if self._held.endswith(stop[:size])), 0)
