"""What a text's theme is, for every text of a run, grouped by meaning or not.

Invariant: a bounded size, however many texts a run has; a text that was grouped has the theme it
was grouped into; any other has the theme whose words are most like its own, or none where no words
are like enough: it is never forced into a theme.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from job.themes.groups import ThemeGroup, ThemeText, digest, plain_text
from job.themes.likeness import Profiles


@dataclass(frozen=True, slots=True)
class Words:
    """The words of themes, and the id of each theme in their order."""

    profiles: Profiles
    themes: list[str]


@dataclass(slots=True)
class ThemeIndex:
    """Themes by digest of the texts that were grouped and, where others are left, the words of the
    themes, of problems and of praise apart."""

    themes: dict[bytes, str] = field(default_factory=dict)
    words: dict[bool, Words] = field(default_factory=dict)

    @classmethod
    def of(
        cls, texts: Sequence[ThemeText], groups: Sequence[ThemeGroup], complete: bool
    ) -> ThemeIndex:
        """The index of `groups` of `texts`. `complete`: the run has no others."""
        index = cls()
        said: dict[bool, dict[ThemeText, int]] = {False: {}, True: {}}
        ids: dict[bool, list[str]] = {False: [], True: []}
        for group in groups:
            for i in group.members:
                index.themes[digest(texts[i])] = group.id
                said[group.positive].setdefault(plain_text(texts[i]), len(ids[group.positive]))
            ids[group.positive].append(group.id)
        if not complete:
            for positive, rows in said.items():
                if rows:
                    profiles = Profiles.of(_sides(list(rows)), list(rows.values()))
                    index.words[positive] = Words(profiles, ids[positive])
        return index

    def of_texts(self, texts: Sequence[ThemeText]) -> list[str | None]:
        """The theme of each text."""
        found = [self.themes.get(digest(text)) for text in texts]
        for positive, words in self.words.items():
            left = [
                i
                for i, theme in enumerate(found)
                if theme is None and texts[i].positive == positive
            ]
            if left:
                sides = _sides([plain_text(texts[i]) for i in left])
                for i, row in zip(left, words.profiles.nearest(sides), strict=True):
                    found[i] = None if row is None else words.themes[row]
        return found


def _sides(plain: Sequence[ThemeText]) -> list[list[str]]:
    """The events of texts of one polarity and, where they have any, their causes."""
    events = [text.event for text in plain]
    return [events] if plain[0].positive else [events, [text.cause or "" for text in plain]]
