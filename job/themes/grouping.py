"""The issues of a run -> its themes, and their names.

Grouping comes first (`group_issues`), then every issue is given its theme and counted
(`finish.py`), then the themes are named by what they hold (`name_groups`).

Invariant: the groups depend on the distinct issues alone, not on the order of the result files; an
issue of a problem or of praise has one theme, or none where the run has more distinct ones than can
be grouped and it is like none of those that were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from job.embed import open_bundled, open_embedder
from job.instructions import Language
from job.naming.code_names import Aspect, ThemeInput, ThemeIssue, ThemeName, code_name
from job.storage.place import Place
from job.themes.calibrate import space_of
from job.themes.groups import ThemeGroup, ThemeText, group_texts
from job.themes.ids import continue_ids
from job.themes.index import ThemeIndex
from job.themes.issues import SAMPLE, Sample, sample_issues
from job.themes.table import EarlierTheme
from serve.ask.answers_at import AnswersAt

Tally = Mapping[str, Counter[Aspect]]
"""All issues of each theme, by severity and basis."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The themes of a run and what they were formed of. `texts` are what the members of a group
    are indices of; `index` gives the theme of any text; `space`: the embedding model."""

    groups: list[ThemeGroup] = field(default_factory=list)
    texts: list[ThemeText] = field(default_factory=list)
    sample: Sample = field(default_factory=Sample)
    index: ThemeIndex = field(default_factory=ThemeIndex)
    space: str = ""


def group_issues(
    results: Sequence[Place],
    earlier: Sequence[EarlierTheme] = (),
    limit: int = SAMPLE,
    kept: AnswersAt | None = None,
) -> Groups:
    """Group the issues of the result files, at most `limit` distinct ones of each polarity by
    meaning. A theme that continues one of `earlier` keeps its id. `kept`: the store of answers that
    keeps vectors, if one does."""
    sample = sample_issues(results, limit)
    if not sample.details:
        return Groups()
    texts = sorted(sample.details, key=lambda text: (text.event, text.cause or "", text.positive))
    counts = [sample.details[text].total() for text in texts]
    space_name, encode = open_embedder() if kept is None else open_bundled(kept)
    space = space_of(space_name, encode)
    groups = group_texts(texts, counts, space, encode, sample.counts)
    ids = continue_ids(groups, [theme for theme in earlier if theme.space == space_name])
    groups = [replace(group, id=ids[group.id]) for group in groups]
    index = ThemeIndex.of(texts, groups, sample.complete)
    return Groups(groups, texts, sample, index, space_name)


def name_groups(
    grouped: Groups,
    tally: Tally,
    language: Language,
    ask_names: Callable[[Sequence[ThemeInput]], dict[str, ThemeName]] | None = None,
) -> tuple[list[ThemeGroup], dict[str, ThemeName]]:
    """The groups with all issues of the run counted, the greatest first, and their names by id.
    `ask_names` has the model name those it can; the others, or all without it, get the code's own
    sentence."""
    groups = [replace(group, count=tally[group.id].total()) for group in grouped.groups]
    groups.sort(key=lambda group: (-group.count, group.id))
    inputs = [_input(group, grouped, tally[group.id]) for group in groups]
    names = {theme.id: code_name(theme, language) for theme in inputs}
    if ask_names is not None and inputs:
        names |= ask_names(inputs)
    return groups, names


def _input(group: ThemeGroup, grouped: Groups, tally: Counter[Aspect]) -> ThemeInput:
    """What a theme is named by: its representative's issues first, then the most frequent."""
    texts, details = grouped.texts, grouped.sample.details
    issues = [
        (i != group.representative, ThemeIssue(texts[i].event, texts[i].cause, *_named(d), n))
        for i in group.members
        for d, n in details[texts[i]].items()
    ]
    issues.sort(key=lambda pair: (pair[0], -pair[1].count, pair[1].event, repr(pair[1])))
    listed = ThemeInput(group.id, tuple(issue for _, issue in issues))
    return replace(listed, others=tally - listed.aspects)


def _named(detail: tuple[str, str | None, str]) -> tuple[Any, Any, Any]:
    return cast(tuple[Any, Any, Any], detail)
