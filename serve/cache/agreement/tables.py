"""What words do in a question, as two tables say it: `english.txt` and `chinese.txt`.

Invariant: the tables hold closed classes of the language (function words, ways to ask, negations,
opposites) and everyday synonyms, never names: what they do not know is what a question is about.

A line is `meaning: word, phrase, ...`; a meaning may have several lines. Meanings are

    silent    says nothing that changes an answer
    negates   not, without, except, ...
    ?x        asks for x; `?yes` for yes or no
    &x        can, should, must, will
    @x, @x+   I, you, ...; mine, yours
    +x, -x    opposites
    ~x        may be left out: what to do where only one thing can be done
    ^~x       the same where a request begins with it (explain, list), else a word like others
    x         what synonyms share

and `?yes|&can` is two of them.
"""

from __future__ import annotations

from importlib.resources import files

SILENT = ""
NEGATES = "!"
FRAME = "^"
NUMBER = "#"
PERSON = "@"
MODAL = "&"
_WRITTEN = {"silent": SILENT, "negates": NEGATES}


def read_table(name: str) -> dict[str, str]:
    """Word or phrase -> meaning. A word in two meanings has that of the last line."""
    table: dict[str, str] = {}
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            meaning, _, words = line.partition(":")
            for word in words.split(","):
                table[word.strip()] = _WRITTEN.get(meaning, meaning)
    return table


def is_strict(meaning: str) -> bool:
    """Whether a question with a word of this meaning is another one without it."""
    return len(meaning) > 1 and meaning[0] in "?+-"


def may_miss(meaning: str) -> bool:
    """Whether a question may leave out a word of this meaning."""
    return meaning.startswith("~") and len(meaning) > 1
