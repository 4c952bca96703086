"""What a text's theme is, for every text of a run, grouped by meaning or not.

Invariant: a bounded size, however many texts a run has; a text that was grouped has the theme it
was grouped into; any other has the theme of the grouped text whose words are most like its own, or
none where no words are like enough: it is never forced into a theme.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from job.likeness import Lexicon
from job.themes import ThemeGroup, ThemeText, digest, plain_text


@dataclass(slots=True)
class ThemeIndex:
    """Themes by digest of the texts that were grouped and, where others are left, the words of
    these texts, of problems and of praise apart."""

    themes: dict[bytes, str] = field(default_factory=dict)
    words: dict[bool, Words] = field(default_factory=dict)

    @classmethod
    def of(
        cls, texts: Sequence[ThemeText], groups: Sequence[ThemeGroup], complete: bool
    ) -> ThemeIndex:
        """The index of `groups` of `texts`. `complete`: the run has no others."""
        index = cls()
        said: dict[bool, dict[str, str]] = {False: {}, True: {}}
        for group in groups:
            for i in group.members:
                index.themes[digest(texts[i])] = group.id
                said[group.positive].setdefault(_words(texts[i]), group.id)
        if not complete:
            for positive, themes in said.items():
                if themes:
                    lexicon = Lexicon.of(list(themes))
                    index.words[positive] = Words(lexicon, list(themes.values()))
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
            nearest = words.lexicon.nearest([_words(texts[i]) for i in left])
            for i, row in zip(left, nearest, strict=True):
                found[i] = None if row is None else words.themes[row]
        return found


@dataclass(frozen=True, slots=True)
class Words:
    """The words of texts that were grouped, and the theme of each."""

    lexicon: Lexicon
    themes: list[str]


def _words(text: ThemeText) -> str:
    plain = plain_text(text)
    return plain.event if plain.cause in (None, plain.event) else f"{plain.event}\n{plain.cause}"
