"""Whether two questions that look alike ask the same, as far as code can tell: pure.

Invariant: in doubt they do not. Two questions agree when they say the same words in the same order,
but for what the closed lists of `serve.cache.agreement` allow: manners, final punctuation, spelling
(their form), and a few other words and turns (their meaning). From the first colon, line break,
quotation mark, backtick or bracket on they are the same to the letter.

It is the last word on what the near and the semantic cache found, and the lists say what may
differ, never what may not: a language has no end of words that change a question.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import NamedTuple

from serve.cache.agreement import chinese, chinese_meaning, english, english_meaning

LONGEST = 4_000
"""Characters of a question that is read; a longer one agrees only with an equal one."""
_LETTER = re.compile(
    '[:：\n\r"“”„«»`´‘\u2018「」『』《》〈〉()（）\\[\\]［］{}｛｝【】<>＜＞]'
    "|(?<![A-Za-z])['\u2019]|['\u2019](?![A-Za-z])"
)
"""What begins text to work on, code or a quotation. An apostrophe inside a word does not."""
_HAN = re.compile(f"[{chinese.HAN}]")


class Asked(NamedTuple):
    """What a question asks. `said`: the words that were read; `letter`: the rest to the letter."""

    said: str
    letter: str

    def digest(self, partition: bytes = b"") -> bytes:
        """32 bytes that only equal questions in the same partition have."""
        text = f"{len(self.said)}:{self.said}{self.letter}"
        return blake2b(partition + text.encode("utf-8", "surrogatepass"), digest_size=32).digest()


def form(text: str) -> Asked:
    """What `text` asks, without how it is written: what the near cache compares."""
    words, letter = _read(text)
    return Asked(words if isinstance(words, str) else " ".join(words), letter)


def meaning(text: str) -> Asked:
    """What `text` asks, without how it is said: what the semantic cache compares."""
    words, letter = _read(text)
    if isinstance(words, str):
        return Asked(chinese_meaning.meaning(words, letter), letter)
    return Asked(" ".join(english_meaning.meaning(words, letter)), letter)


def agrees(a: str, b: str) -> bool:
    """Whether an answer to `a` may be given to `b`, were they alike enough."""
    return a == b or meaning(a) == meaning(b)


def _read(text: str) -> tuple[str | list[str], str]:
    """The form of a question, by characters or by words, and what follows it to the letter."""
    if len(text) > LONGEST:
        return "", text
    found = _LETTER.search(text)
    at = found.start() if found else len(text)
    head, letter = text[:at], text[at:]
    if _HAN.search(head):
        return chinese.form(head, whole=not letter), letter
    return english.form(head, whole=not letter), letter
