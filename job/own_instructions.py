"""The user's own instructions to the model, from the file they are kept in.

Invariant: the text is taken as it was written, but for white space around it and the notation of
line ends. It goes to the provider like that; what is shown of it elsewhere is masked.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any

from job.errors import UsageError
from job.mask.masking import Masker
from serve.ask import tokens

MOST_CHARACTERS = 20_000
"""Every call carries them: at 5,000 tokens or more they cost as much as the records of a pack."""
SHOWN_CHARACTERS = 80
"""Of their first line, in the report."""
_BYTES_A_CHARACTER = 4
"""In UTF-8, at most."""
_NOT_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f]")


def read_instructions(path: str | None, flag: str = "--instructions") -> str:
    """The text of the file at `path`, named by `flag`; "" for None. Raises UsageError where it
    cannot be read, is no text, is too long, or holds no word."""
    if path is None:
        return ""
    # Of a user that does not exist it leaves the name as it is.
    file = Path(os.path.expanduser(path))
    named = f"{flag} {file}"
    if "://" in path:
        raise UsageError(f"{named}: name a file of this machine")
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_CHARACTERS * _BYTES_A_CHARACTER + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {named}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        if len(data) > MOST_CHARACTERS * _BYTES_A_CHARACTER:
            raise _too_long(named) from error
        raise UsageError(f"{named} is not UTF-8: save it as UTF-8") from error
    text = re.sub("\r\n?", "\n", text).strip()
    if len(text) > MOST_CHARACTERS:
        raise _too_long(named)
    if _NOT_TEXT.search(text):
        raise UsageError(f"{named} holds control characters: it is not a text file")
    if not any(map(str.isalpha, text)):
        raise UsageError(f"{named} holds no word: write down your rules, one a line")
    return text


def _too_long(named: str) -> UsageError:
    return UsageError(
        f"{named} is longer than {MOST_CHARACTERS:,} characters, and every call carries it: keep "
        "the rules, leave explanations out"
    )


def check_compression(wanted: bool, own: str) -> bool:
    """`wanted`, where there is something to shorten. Raises UsageError where there is not."""
    if wanted and not own:
        raise UsageError(
            "--compress-instructions without instructions: name their file with --instructions"
        )
    return wanted


def unheard_instructions(own: str, asked: bool) -> list[str]:
    """A warning where nobody is asked who could follow the instructions."""
    if not own or asked:
        return []
    return [
        "the built-in analyst goes by its own rules: the instructions of fupan.yaml are not used"
    ]


def own_hash(own: str) -> str:
    """16 hex digits over the text."""
    return hashlib.blake2b(own.encode(), digest_size=8).hexdigest()


def shown_instructions(own: str, masker: Masker) -> dict[str, Any] | None:
    """What a report may say of the instructions: their hash, length and masked first line; None
    where there are none."""
    if not own:
        return None
    first = masker.mask(own.split("\n", 1)[0].strip())[0]
    if len(first) > SHOWN_CHARACTERS:
        first = f"{first[: SHOWN_CHARACTERS - 1]}…"
    return {
        "hash": own_hash(own),
        "characters": len(own),
        "tokens": tokens.count(own),
        "first_line": first,
    }
