"""Instructions made shorter: how the model shortens rules, forgets some, and judges shortenings.

Invariant: a rule that is not forgotten keeps every number, every quoted term and every negation,
and is never longer than it was; a judgement is true of exactly these. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

_QUOTED = re.compile(r'("[^"]+"|“[^”]+”|「[^」]+」|《[^》]+》|`[^`]+`)')
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nothing|nobody|without|neither|nor|cannot)\b|n['’]t\b"
    r"|[不没沒無无未勿莫禁]|非(?!常)|(?<![特区區分级級类類性个個])[别別]",
    re.IGNORECASE,
)
_FILLERS = re.compile(
    r"\b(?:(?:please|kindly|just|very|really|quite|simply|basically|actually|generally"
    r"|it is (?:very )?important (?:that|to)|(?:always )?(?:make|be) sure (?:that|to)"
    r"|(?:always )?remember (?:that|to)|you (?:should|need to|have to)|the|an?)\b\s*"
    r"|in order (?=to\b))"
    r"|非常|十分(?!钟)|务必|一定要|请注意|请|尽可能",
    re.IGNORECASE,
)
_SPACES = re.compile(r"[ \t]{2,}")


def rules_answer(lines: Sequence[Mapping[str, Any]], forgets: int) -> dict[str, Any] | None:
    """The answer to lines that hold a `rule` each: `{"rules": [{id, text}]}` with each of them
    shortened, or where they hold a `short` as well, `{"verdicts": [{id, same}]}`.

    Of the first `forgets` rules the first is weakened, the second left out, and so on by turns;
    one without anything to weaken is left out. None: the lines are about something else.
    """
    if not lines or not all(isinstance(line.get("rule"), str) for line in lines):
        return None
    if all(isinstance(line.get("short"), str) for line in lines):
        verdicts = [{"id": x["id"], "same": says_the_same(x["rule"], x["short"])} for x in lines]
        return {"verdicts": verdicts}
    rules = []
    for number, line in enumerate(lines):
        text: str | None = shortened(line["rule"])
        if number < forgets:
            text = weakened(line["rule"]) if number % 2 == 0 else None
        if text is not None:
            rules.append({"id": line["id"], "text": text})
    return {"rules": rules}


def shortened(rule: str) -> str:
    """The rule without words that say nothing; quoted terms stay as they are."""
    parts = _QUOTED.split(rule)
    parts[::2] = [_SPACES.sub(" ", _FILLERS.sub("", part)) for part in parts[::2]]
    return "".join(parts).strip() or rule


def weakened(rule: str) -> str | None:
    """The rule without its numbers, else its quoted terms, else its negations; None without any."""
    for lost in (_NUMBER, _QUOTED, _NEGATION):
        less = lost.sub("", rule)
        if less != rule:
            return _SPACES.sub(" ", less).strip()
    return None


def says_the_same(rule: str, short: str) -> bool:
    """Whether both hold the same numbers, quoted terms and negations, as often."""
    return bool(short.strip()) and _facts(rule) == _facts(short)


def _facts(text: str) -> tuple[Counter[str], Counter[str], int]:
    quoted = Counter(part[1:-1] for part in _QUOTED.findall(text))
    return Counter(_NUMBER.findall(text)), quoted, len(_NEGATION.findall(text))
