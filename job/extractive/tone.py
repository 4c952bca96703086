"""How a clause is meant: does it tell of a failure, complain, praise? Pure.

Invariant: a sign that is denied ("no errors"), counted as zero, repaired, or only supposed ("if it
fails") is no sign; a denied praise is a complaint.
"""

from __future__ import annotations

from typing import NamedTuple

from job.extractive.grammar import Grammar

_WEIGHTS = {"strong": 3, "failure": 2, "mild": 1}


class Tone(NamedTuple):
    """`failure`: 3 certainly, 2 likely, 1 a hint, 0 none; `complaint`: 2 or 0, about a thing;
    `mood`: 2 or 0, only a feeling or a verdict; `praise`: 2 clear, 1 a liking; `thanks`."""

    failure: int = 0
    complaint: int = 0
    mood: int = 0
    praise: int = 0
    thanks: bool = False

    @property
    def trouble(self) -> int:
        """The heaviest of what is negative."""
        return max(self.failure, self.complaint, self.mood)


NONE = Tone()


def tone(low: str, start: int, end: int, rules: tuple[Grammar, ...]) -> Tone:
    """The tone of a span of lower-case text."""
    failure = complaint = mood = praise = 0
    thanks = False
    for rule in rules:
        for match in rule.signs.finditer(low, start, end):
            name = (match.lastgroup or "").partition("_")[0]
            if name in _WEIGHTS:
                failure = max(failure, _WEIGHTS[name])
            elif name == "complaint":
                complaint = 2
            elif name == "mood":
                mood = 2
            elif name == "praise":
                praise = 2
            elif name == "liking":
                praise = max(praise, 1)
            elif name == "thanks":
                thanks = True
    return Tone(failure, complaint, mood, praise, thanks)
