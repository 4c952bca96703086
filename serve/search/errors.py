"""What goes wrong in a search.

    SearchError               what, and what to do now; safe to show to whoever asks
     +- BadQuery              the query makes no sense; `param` names the field
     +- NoSuchReport          no run of the tenant has this name, or the run has no such file
     +- AmbiguousReport       several runs of the tenant have this name
     +- SearchDown            nobody answers now: try again
     +- NoMeaning             the embedding model gives no vector, and only meaning was asked for
     `- DamagedRun            a run's folder cannot be read: it is skipped, and named

Invariant: all carry plain values and survive pickling between processes; none tells a tenant
anything of another one's runs.
"""

from __future__ import annotations


class SearchError(Exception):
    """Base of all errors of searching."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message, param)
        self.message = message
        self.param = param

    def __str__(self) -> str:
        return self.message


class BadQuery(SearchError):
    """The query makes no sense."""


class NoSuchReport(SearchError):
    """There is no such run, or no such file of it."""


class AmbiguousReport(SearchError):
    """Several runs have the name that was asked for."""


class NoMeaning(SearchError):
    """Nobody turns the query into a vector now."""


class SearchDown(SearchError):
    """No replica of the search answers now."""


class DamagedRun(SearchError):
    """What is in a run's folder is not what a finished run leaves."""
