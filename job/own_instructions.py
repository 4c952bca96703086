"""The user's own instructions to the model, from the file they are kept in.

Invariant: the text is taken as it was written, but for white space around it.
"""

from __future__ import annotations

from pathlib import Path

from job.errors import UsageError


def read_instructions(path: str | None) -> str:
    """The text of the file at `path`; "" for None. Raises UsageError where it cannot be read or
    holds nothing."""
    if path is None:
        return ""
    file = Path(path).expanduser()
    try:
        text = file.read_text(encoding="utf-8-sig").strip()
    except OSError as error:
        raise UsageError(f"cannot read --instructions {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--instructions {file} is not UTF-8: save it as UTF-8") from error
    if not text:
        raise UsageError(f"--instructions {file} is empty")
    return text
