"""The issues of a run -> its themes, with names, and which issue belongs to which.

Invariant: the groups depend on the distinct issues alone, not on the order of the result files; an
issue of a problem or of praise has exactly one theme, one of any other outcome none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from job.calibrate import space_of
from job.code_names import ThemeInput, ThemeIssue, ThemeName, code_name
from job.embed import open_embedder
from job.finish import ThemeKey
from job.instructions import Language
from job.theme_ids import continue_ids
from job.theme_table import EarlierTheme
from job.themes import ThemeGroup, ThemeText, group_texts
from job.write import read_tables

_OUTCOMES = {"problem": False, "positive": True}
"""Outcomes whose issues have themes, and whether those are praise."""

Detail = tuple[Any, ...]
"""Basis, suggestion and severity of an issue."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The themes of a run, the greatest first, their names by id, and the theme of each issue;
    `space`: the embedding model they were formed by."""

    groups: list[ThemeGroup]
    names: dict[str, ThemeName]
    themes: dict[ThemeKey, str]
    space: str


@dataclass(slots=True)
class DistinctIssues:
    """Every distinct (event, cause) with how its issues differ in the rest."""

    details: dict[ThemeText, Counter[Detail]] = field(default_factory=dict)

    def add(self, outcome: str, issue: dict[str, Any]) -> None:
        """Count one issue of a record of that outcome."""
        text = ThemeText(issue["event"], issue["cause"], _OUTCOMES[outcome])
        detail = (issue["basis"], issue["suggestion"], issue["severity"])
        self.details.setdefault(text, Counter())[detail] += 1


def collect_issues(results: Iterable[Path]) -> DistinctIssues:
    """The distinct issues of result files, read a bounded number of rows at a time."""
    found = DistinctIssues()
    wanted = pa.array(list(_OUTCOMES))
    for table in read_tables(results, columns=["outcome", "issues"]):
        for row in table.filter(pc.is_in(table["outcome"], wanted)).to_pylist():
            for issue in row["issues"]:
                found.add(row["outcome"], issue)
    return found


def group_issues(
    results: Iterable[Path],
    language: Language,
    ask_names: Callable[[Sequence[ThemeInput]], dict[str, ThemeName]] | None,
    earlier: Sequence[EarlierTheme] = (),
) -> Groups:
    """Group the issues of the result files and name the groups. `ask_names` has the model name
    those it can; the others, or all without it, get the code's own sentence. A theme that
    continues one of `earlier` keeps its id."""
    found = collect_issues(results).details
    if not found:
        return Groups([], {}, {}, "")
    texts = sorted(found, key=lambda text: (text.event, text.cause or "", text.positive))
    counts = [found[text].total() for text in texts]
    space_name, encode = open_embedder()
    space = space_of(space_name, encode)
    groups = group_texts(texts, counts, space, encode)
    ids = continue_ids(groups, [theme for theme in earlier if theme.space == space_name])
    groups = [replace(group, id=ids[group.id]) for group in groups]
    inputs = [_input(group, texts, found) for group in groups]
    names = {theme.id: code_name(theme, language) for theme in inputs}
    if ask_names is not None:
        names |= ask_names(inputs)
    outcomes = {positive: outcome for outcome, positive in _OUTCOMES.items()}
    themes: dict[ThemeKey, str] = {
        (outcomes[texts[i].positive], texts[i].event, texts[i].cause): group.id
        for group in groups
        for i in group.members
    }
    return Groups(groups, names, themes, space_name)


def _input(
    group: ThemeGroup, texts: Sequence[ThemeText], found: dict[ThemeText, Counter[Detail]]
) -> ThemeInput:
    """What a theme is named by: its representative's issues first, then the most frequent."""
    issues = [
        (i != group.representative, ThemeIssue(texts[i].event, texts[i].cause, *_named(d), n))
        for i in group.members
        for d, n in found[texts[i]].items()
    ]
    issues.sort(key=lambda pair: (pair[0], -pair[1].count, pair[1].event, repr(pair[1])))
    return ThemeInput(group.id, tuple(issue for _, issue in issues))


def _named(detail: Detail) -> tuple[Any, Any, Any]:
    basis, suggestion, severity = detail
    return basis, suggestion, severity
