"""The form of an English question: its words, without manners, final punctuation and spelling.

Invariant: only what is listed here is taken off or rewritten; every other word stays as it is
written, in its place, with its case and its signs.
"""

from __future__ import annotations

_ASKS = frozenset(
    (
        *("what", "what's", "which", "who", "who's", "whom", "whose", "when", "where", "where's"),
        *("why", "how", "how's", "is", "are", "was", "were", "do", "does", "did", "can", "could"),
        *("should", "would", "has", "have", "isn't", "aren't", "doesn't", "don't", "can't"),
    )
)
"""What a question begins with."""
_INDIRECT = frozenset(("what", "what's", "which", "who", "who's", "when", "where", "why", "how"))
_COMMANDS = frozenset(
    (
        *("tell", "explain", "write", "list", "show", "give", "translate", "summarize", "describe"),
        *("summarise", "compare", "convert", "calculate", "define", "suggest", "recommend", "help"),
        *("classify", "generate", "create", "solve", "rewrite", "extract"),
    )
)
"""What a request begins with."""
_STARTS = _ASKS | _COMMANDS
_GREETINGS = (("hi,",), ("hello,",), ("hey,",), ("excuse", "me,"), ("please,",), ("please",))
_POLITE = frozenset(
    (modal, "you", polite)
    for modal in ("can", "could", "would", "will")
    for polite in ("please", "kindly")
)
_CAN_YOU = (("can", "you"), ("could", "you"))
_FAVOURS = frozenset(("explain", "suggest", "recommend", "summarize", "summarise", "describe"))
"""What "can you" asks for, not whether it can be done."""
_TELL_ME = (
    ("can", "you", "tell", "me"),
    ("could", "you", "tell", "me"),
    ("tell", "me"),
    ("i", "want", "to", "know"),
    ("i", "would", "like", "to", "know"),
)
"""What may stand before an indirect question."""
_THANKS = (", please", ", thanks", ", thank you", "? thanks", "? thank you", ". thanks")
_LONGEST_THANKS = max(map(len, _THANKS))
_FIRST = _STARTS | {each[0] for each in (*_GREETINGS, *_TELL_ME)} | {"will"}
"""What begins a question or request, with its manners."""
_FRONT = 5
"""Words up to the first of a question behind a comma."""
_LEAST = 3
"""Words of an indirect question: "tell me why" is no frame around "why"."""
_WRITTEN = {
    "what's": "what is",
    "where's": "where is",
    "who's": "who is",
    "how's": "how is",
    "that's": "that is",
    "it's": "it is",
    "I'm": "I am",
    "i'm": "I am",
    "isn't": "is not",
    "aren't": "are not",
    "wasn't": "was not",
    "doesn't": "does not",
    "don't": "do not",
    "didn't": "did not",
    "can't": "cannot",
    "won't": "will not",
    "shouldn't": "should not",
    "e-mail": "email",
    "e-mails": "emails",
    "colour": "color",
    "colours": "colors",
    "favourite": "favorite",
    "neighbour": "neighbor",
    "neighbours": "neighbors",
    "flavour": "flavor",
    "behaviour": "behavior",
    "labour": "labor",
    "centre": "center",
    "theatre": "theater",
    "organise": "organize",
    "analyse": "analyze",
    "summarise": "summarize",
    "summarising": "summarizing",
    "recognise": "recognize",
    "jewellery": "jewelry",
    "aeroplane": "airplane",
    "cancelled": "canceled",
    "travelling": "traveling",
    "mum": "mom",
}
"""Other spellings of the same word."""
_I_AFTER = frozenset((("how", "do"), ("how", "can"), ("how", "should"), ("where", "can")))
_NOT_I = frozenset(("and", "or", "be", "equal", "have", "become", "differ"))
"""What shows that "i" is a letter or a number: how can i be negative."""
_ABOUT_WORDS = frozenset(
    (
        *("spell", "spelled", "spelt", "spelling", "word", "words", "letter", "letters", "say"),
        *("pronounce", "pronounced", "mean", "means", "meaning", "write", "written", "grammar"),
        *("correct", "syllables", "rhyme", "rhymes", "translate", "british", "British", "American"),
        *("called", "plural", "apostrophe", "contraction", "noun", "verb", "anagram"),
    )
)
"""Words of questions that may be about words, in which each is as it is written: how many letters
are in colour."""


def form(text: str, whole: bool) -> list[str]:
    """The words of `text`. `whole`: it goes on to the end of the question."""
    words = text.replace("\u2019", "'").lstrip(" ").split(" ")
    said = _without_manners(words)
    if whole:
        asked = len(said) < len(words) and said[0] in _COMMANDS
        said = _without_end(" ".join(said).rstrip(" "), said, asked).split(" ")
    if tuple(said[:2]) in _I_AFTER and said[2:3] == ["i"] and said[3:4]:
        said[2] = "i" if said[3] in _NOT_I else "I"
    first = _WRITTEN.get(said[0], said[0]).split(" ")
    if is_about_words(said):
        return [*first, *said[1:]]
    return [*first, *(each for word in said[1:] for each in _WRITTEN.get(word, word).split(" "))]


def is_about_words(words: list[str]) -> bool:
    """Whether a question may be about how something is said or written."""
    return not _ABOUT_WORDS.isdisjoint(words)


def _without_end(text: str, words: list[str], asked: bool) -> str:
    """`text`, which is `words`, without thanks and the mark that ends it: of a question "?", else
    ".". Another mark stays, since it makes it another sentence. `asked`: it was "can you"."""
    asks = asked or _asks(words)
    bare = text[:-1] if text.endswith(("?", "!", ".")) else text
    last = bare[-_LONGEST_THANKS:].lower()
    if words[0] in _STARTS and last.endswith(_THANKS) and not is_about_words(words):
        for thanks in _THANKS:
            if last.endswith(thanks):
                return _without_mark(bare[: 1 - len(thanks)].rstrip(","), asks)
    return _without_mark(text, asks)


def _asks(words: list[str]) -> bool:
    """Whether a question begins here, or behind the first comma (in Excel, how ...)."""
    before = words[0]
    if before in _ASKS:
        return True
    for word in words[1:_FRONT]:
        if before.endswith(","):
            return word in _ASKS
        before = word
    return False


def _without_mark(text: str, asks: bool) -> str:
    bare = text[:-1].rstrip(" ")
    if asks and text.endswith("?") and bare[-1:].isalnum():
        return bare
    last = bare.rpartition(" ")[2]
    if not asks and text.endswith(".") and last[-1:].isalpha() and "." not in last:
        return bare
    return text


def _without_manners(words: list[str]) -> list[str]:
    """The words after the greeting, please and "can you tell me", where what is left is a question
    or a request by itself."""
    if _lowered(words[0]) not in _FIRST:
        return words
    for greeting in _GREETINGS:
        words = _after(words, greeting, _STARTS)
    lowered = tuple(map(_lowered, words[:3]))
    if lowered in _POLITE and words[3:4] and words[3] in _COMMANDS:
        words = words[3:]
    for can_you in _CAN_YOU:
        words = _after(words, can_you, _FAVOURS)
    for frame in _TELL_ME:
        if len(words) >= len(frame) + _LEAST:
            words = _after(words, frame, _INDIRECT)
    first = _lowered(words[0])
    return [first, *words[1:]] if first in _STARTS else words


def _after(words: list[str], frame: tuple[str, ...], starts: frozenset[str]) -> list[str]:
    size = len(frame)
    if len(words) <= size or _lowered(words[size]) not in starts:
        return words
    return words[size:] if tuple(map(_lowered, words[:size])) == frame else words


def _lowered(word: str) -> str:
    """A word as it is written inside a sentence; one in capitals is another one (WHO)."""
    return word[:1].lower() + word[1:]
