"""What a language tells the built-in analyst, and the shape in which it tells it.

Invariant: patterns are matched against text of the same length as the record's, so that every
position found is a position in the record.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from job.records import Basis


class Connective:
    """One way to say why: a pattern with the groups `e` (effect) and `c` (cause).

    `weak`: the word also means other things, so the effect must tell of a failure itself.
    `reported`: somebody only said so, so the cause must tell of a failure itself, and the effect of
    trouble unless that was told before. `hearsay`: it was said to explain, so one is enough.
    `basis`: `inferred` where the language gives only an order in time ("after the move, ...").
    """

    __slots__ = ("basis", "hearsay", "pattern", "reported", "weak")

    def __init__(
        self,
        pattern: str,
        weak: bool = False,
        reported: bool = False,
        hearsay: bool = False,
        basis: Basis = "stated",
    ) -> None:
        self.pattern = re.compile(pattern, re.DOTALL)
        self.weak = weak
        self.reported = reported
        self.hearsay = hearsay
        self.basis = basis


def words(block: str) -> str:
    """One pattern for any of the words of the block: regular expressions apart by white space, in
    which `_` stands for a space. An earlier one wins."""
    return f"(?:{'|'.join(block.split())})".replace("_", " ")


def either(*patterns: str) -> str:
    """One pattern for any of the patterns; an earlier one wins."""
    return f"(?:{'|'.join(patterns)})"


def signs(*groups: tuple[str, str], before: str = "", after: str = "") -> re.Pattern[str]:
    """One pattern that finds every sign in one pass; at one place the earlier group wins.

    `lastgroup` of a match is the group's name and a running number, since a name may come twice.
    `before` and `after` are what must stand around a sign.
    """
    alternatives = (f"(?P<{name}_{n}>{pattern})" for n, (name, pattern) in enumerate(groups))
    return re.compile(f"{before}{either(*alternatives)}{after}")


@dataclass(frozen=True, slots=True)
class Grammar:
    """The rules of one language.

    `signs`: words that say how a clause is meant. `connectives`: in order of reliability.
    `task`: how a sentence begins that asks for work instead of telling; `about_self`: what makes
    it tell all the same. `admission`: the assistant's words for what it could not do; `apology`:
    on hearing of a problem; `finding`: on having looked into it; `promise`: a clause that offers,
    asks or promises instead of explaining; `gratitude`: on hearing praise. `saying`: who says so,
    before what is said. `contrast`, `comma`: where a clause
    ends inside a sentence. `addition`: begins one more point. `leading`,
    `trailing`: what adds nothing to an event. `pronoun`: begins a clause that needs the one before
    it. `hollow`: an effect without content of its own ("the driver said it was"). `no_praise`: what
    makes a clause with a word of praise a question, a wish or talk; `assent`: a clause that only
    agrees with the other side.
    """

    signs: re.Pattern[str]
    connectives: tuple[Connective, ...]
    task: re.Pattern[str]
    about_self: re.Pattern[str]
    admission: re.Pattern[str]
    apology: re.Pattern[str]
    finding: re.Pattern[str]
    promise: re.Pattern[str]
    saying: re.Pattern[str]
    gratitude: re.Pattern[str]
    contrast: re.Pattern[str]
    comma: re.Pattern[str]
    addition: re.Pattern[str]
    leading: re.Pattern[str]
    trailing: re.Pattern[str]
    pronoun: re.Pattern[str]
    hollow: re.Pattern[str]
    no_praise: re.Pattern[str]
    assent: re.Pattern[str]
