"""Names that code gives a theme, in its own sentences, and the severity of every theme. Pure.

Invariant: a name made here holds only texts of the theme's issues, in a frame of fixed words, and
counts made by code.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from job.extractive.advice import HARM_WORDS, Harm, harms
from job.instructions import Language
from job.records import SEVERITIES, Basis, Severity
from job.text import language as language_of

TITLE_CHARACTERS = 60
EXAMPLES = 5
"""Issues of a theme that are shown to the model that names it."""
_SHARE = 1 / 3
"""Of a theme's issues that must be of a severity or worse for the theme to have it: the most
frequent one counts, but a third of graver ones outweighs a majority of lighter ones."""

_HARMS_SHOWN = 2
_COMPARED = 200
_FEWEST = 3
"""Different events from which on the most typical one can be told, and words that make one telling;
so many are compared."""
_WHOLE = 4
"""Words that an event has at least that says what happened."""
_CUT = 0.7
"""What an event counts that is too long for a title."""
_LATIN_WORD = re.compile(r"[a-z][a-z'-]+")
_HAN_RUN = re.compile("[\u4e00-\u9fff]+")
_DIGITS = re.compile(r"\d+")
_MEASURE_END = re.compile(
    r"\s(?:for|after|in|within|of|at)\s\d[\d.,]*\s?[A-Za-z%]{0,12}$"
    r"|[，,]?\s?\d[\d.,]*\s?(?:毫?秒|分钟|小时|次|天|条|个|ms|s)$"
)
_CHINESE_FIELD = re.compile(r"(?<=.)[，,]\s?[\u4e00-\u9fff]{1,4} [^，,\s]{1,20}(?=[，,。]|$)")
"""A field of one case behind what happened: 创建订单失败，城市 沈阳."""
_CLAUSE_END = re.compile(r"[。！？；，;!?\n]|[.,:](?=\s)")


Aspect = tuple[Severity, Basis | None]
"""What is counted of an issue: how grave it is, and whence its cause (None: it has none)."""


@dataclass(frozen=True, slots=True)
class ThemeIssue:
    """Issues of a theme that say the same: `count` of them. `cause` and `suggestion` as given."""

    event: str
    cause: str | None
    basis: Basis
    suggestion: str | None
    severity: Severity
    count: int


@dataclass(frozen=True, slots=True)
class ThemeInput:
    """A theme to be named. `issues`: the most telling first (the representative text, then the
    most frequent), at least one. `others`: how many more there are, whose words are not at hand,
    by severity and basis (None: no cause)."""

    id: str
    issues: tuple[ThemeIssue, ...]
    others: Mapping[Aspect, int] = field(default_factory=dict)

    @property
    def aspects(self) -> Counter[Aspect]:
        """All issues of the theme by severity and basis."""
        counts: Counter[Aspect] = Counter(self.others)
        for issue in self.issues:
            counts[issue.severity, issue.basis if issue.cause else None] += issue.count
        return counts

    @property
    def severities(self) -> Counter[Severity]:
        """All issues of the theme by severity."""
        counts: Counter[Severity] = Counter()
        for (severity, _), count in self.aspects.items():
            counts[severity] += count
        return counts

    @property
    def count(self) -> int:
        """Issues of the theme."""
        return self.aspects.total()

    @property
    def shown(self) -> tuple[ThemeIssue, ...]:
        """The issues a model is shown: the first few of different event or cause."""
        distinct: dict[tuple[str, str | None], ThemeIssue] = {}
        for issue in self.issues:
            distinct.setdefault((issue.event, issue.cause), issue)
        return tuple(distinct.values())[:EXAMPLES]


@dataclass(frozen=True, slots=True)
class ThemeName:
    """What a report says of a theme in words. `named_by`: who found the words."""

    title: str
    summary: str
    cause: str | None
    basis: Basis
    action: str | None
    severity: Severity
    severity_reason: str
    named_by: Literal["model", "code"]


def severity_of(counts: Counter[Severity]) -> Severity:
    """The gravest severity that a third of the issues have or exceed."""
    reached = 0
    for severity in reversed(SEVERITIES):
        reached += counts[severity]
        if reached >= counts.total() * _SHARE:
            return severity
    raise ValueError("a theme has issues")


def code_name(theme: ThemeInput, language: Language) -> ThemeName:
    """The name that code gives `theme`, from issues in `language` where it has any."""
    own = [i for i in theme.issues if language_of(i.event) == language] or list(theme.issues)
    event = typical_event(own)
    title = title_of(_without_measure(event, own))
    cause = _cause(theme, own)
    bases: Counter[Basis | None] = Counter()
    for (_, basis), count in theme.aspects.items():
        bases[basis] += count
    return ThemeName(
        title=title,
        summary=_sentence(event, language),
        cause=cause,
        basis="stated" if bases["stated"] > bases["inferred"] else "inferred",
        action=_action(own, event, cause),
        severity=severity_of(theme.severities),
        severity_reason=severity_reason(theme.severities, language)
        + _spoken_of(theme, severity_of(theme.severities), language),
        named_by="code",
    )


def typical_event(issues: Sequence[ThemeIssue]) -> str:
    """The event whose words most of the theme's events share, so that a name tells what happened
    to all and not to whom it happened once; of equally shared ones the first."""
    return _most_shared(list(dict.fromkeys(issue.event for issue in issues)))


def _most_shared(events: Sequence[str]) -> str:
    events = events[:_COMPARED]
    if len(events) < _FEWEST:
        return events[0]
    told = {event: _pieces(event) for event in events}
    shared: Counter[str] = Counter(piece for pieces in told.values() for piece in pieces)

    def commonness(event: str) -> float:
        pieces = told[event]
        # Divided by a root, so that neither the longest event wins nor a mere "it failed".
        common = sum(shared[piece] - 1 for piece in pieces) / math.sqrt(len(pieces) + _WHOLE)
        return common if len(event) <= TITLE_CHARACTERS else common * _CUT

    telling = [event for event in events if len(told[event]) >= _FEWEST]
    return max(telling or events, key=commonness)


def _pieces(event: str) -> frozenset[str]:
    """The words of an event; of Chinese, which writes none apart, the pairs of characters."""
    found = set(_LATIN_WORD.findall(event.lower()))
    for run in _HAN_RUN.findall(event):
        found.update(run[i : i + 2] for i in range(len(run) - 1))
    return frozenset(found)


def _cause(theme: ThemeInput, own: Sequence[ThemeIssue]) -> str | None:
    """The most frequent cause, of equally frequent ones the one whose words most of them share;
    None where less than a third of the issues name any."""
    named = sum(count for (_, basis), count in theme.aspects.items() if basis)
    if named < theme.count * _SHARE:
        return None
    counts: Counter[str] = Counter()
    for issue in own:
        if issue.cause:
            counts[issue.cause] += issue.count
    most = [cause for cause, count in counts.items() if count == max(counts.values())]
    return _most_shared(most) if most else None


def _action(own: Sequence[ThemeIssue], event: str, cause: str | None) -> str | None:
    """What is suggested to issues of the cause that is shown, else of the event, else to most."""
    for of_it in (
        [issue for issue in own if cause and issue.cause == cause],
        [issue for issue in own if issue.event == event],
        own,
    ):
        if action := _most_frequent(of_it, lambda issue: issue.suggestion):
            return action
    return None


def _without_measure(event: str, own: Sequence[ThemeIssue]) -> str:
    """`event` without the measure at its end where others differ in nothing but numbers."""
    alike = {issue.event for issue in own if _shape(issue.event) == _shape(event)}
    return _MEASURE_END.sub("", event) if len(alike) > 1 else event


def _shape(event: str) -> str:
    return _DIGITS.sub("0", event)


def title_of(event: str) -> str:
    """`event` in at most 60 characters: whole, else up to the end of a clause, else of a word."""
    text = _CHINESE_FIELD.sub("", " ".join(event.split()))
    if len(text) <= TITLE_CHARACTERS:
        return text.rstrip("。.；;，, ")
    ends = [m.start() for m in _CLAUSE_END.finditer(text, 0, TITLE_CHARACTERS + 1)]
    # A clause shorter than half a title says too little, or is none: "a wrong, outdated price".
    if ends and ends[-1] >= TITLE_CHARACTERS // 2:
        return text[: ends[-1]].rstrip()
    space = text.rfind(" ", TITLE_CHARACTERS // 2, TITLE_CHARACTERS)
    return f"{text[: space if space > 0 else TITLE_CHARACTERS - 1]}…"


_SEVERITY_WORDS: dict[Severity, str] = {
    "info": "提示",
    "low": "低",
    "medium": "中",
    "high": "高",
    "critical": "严重",
}


def severity_reason(counts: Counter[Severity], language: Language) -> str:
    """Why a theme has its severity: how its issues are spread, in words with counts."""
    present = [s for s in reversed(SEVERITIES) if counts[s]]
    severity, total = severity_of(counts), counts.total()
    if language == "zh":
        if len(present) == 1:
            return f"{total} 条问题均为“{_SEVERITY_WORDS[severity]}”"
        listed = "、".join(f"{_SEVERITY_WORDS[s]} {counts[s]} 条" for s in present)
        worse = "" if severity == SEVERITIES[-1] else "及以上"
        return f"共 {total} 条问题：{listed}；至少三分之一达到“{_SEVERITY_WORDS[severity]}”{worse}"
    if len(present) == 1:
        return f"All {total} issues are {severity}" if total > 1 else f"Its one issue is {severity}"
    listed = ", ".join(f"{counts[s]} {s}" for s in present)
    worse = "" if severity == SEVERITIES[-1] else " or worse"
    return f"Of {total} issues: {listed}; at least a third are {severity}{worse}"


def _spoken_of(theme: ThemeInput, severity: Severity, language: Language) -> str:
    """What harm the issues of a high or critical theme tell of, the most frequent first."""
    if SEVERITIES.index(severity) < SEVERITIES.index("high"):
        return ""
    found: Counter[Harm] = Counter()
    for issue in theme.issues:
        if SEVERITIES.index(issue.severity) >= SEVERITIES.index(severity):
            for harm in harms(f"{issue.event} {issue.cause or ''}"):
                found[harm] += issue.count
    shown = [HARM_WORDS[harm][language] for harm, _ in found.most_common(_HARMS_SHOWN)]
    if not shown:
        return ""
    if language == "zh":
        return "；其中涉及" + "、".join(shown)
    return "; they tell of " + " and of ".join(shown)


def _most_frequent(
    issues: Sequence[ThemeIssue], text_of: Callable[[ThemeIssue], str | None]
) -> str | None:
    """The text that most issues have; of equally frequent ones the first."""
    counts: Counter[str] = Counter()
    for issue in issues:
        if text := text_of(issue):
            counts[text] += issue.count
    return counts.most_common(1)[0][0] if counts else None


def _sentence(event: str, language: Language) -> str:
    text = " ".join(event.split())
    if text[-1:] in "。.！!？?…":
        return text
    return text + ("。" if language == "zh" else ".")
