"""What reading rejects, each reason made in one place.

The reasons: `bad_json`, `not_a_record`, `too_long`, `truncated`, `bad_csv`, `binary`,
`unreadable`. The excerpt is the beginning as it stood, with more than is shown: `clean` masks it
and then cuts it, so that nothing private is cut before it can be recognised.
"""

from __future__ import annotations

from job.read.encoding import repair
from job.read.lines import MAX_RECORD_BYTES
from job.records import Rejected

EXCERPT_CHARACTERS = 1000


def _rejected(source: str, position: int, reason: str, detail: str, text: str = "") -> Rejected:
    return Rejected(source, position, reason, detail, repair(text[:EXCERPT_CHARACTERS]).strip())


def bad_json(source: str, position: int, error: ValueError, text: str) -> Rejected:
    """Text that should be a JSON value and is not."""
    return _rejected(source, position, "bad_json", str(error) or "not JSON", text)


def not_a_record(source: str, position: int, value: object) -> Rejected:
    """JSON that is neither an object nor an array."""
    detail = f"a JSON {type(value).__name__} alone is not a record"
    return _rejected(source, position, "not_a_record", detail, str(value))


def beside_records(source: str, position: int, key: str, count: int) -> Rejected:
    """An array beside the one that holds the records of a JSON object."""
    detail = f"the array {key!r} of {count} values beside the one that holds the records"
    return _rejected(source, position, "not_a_record", detail)


def without_records(source: str, position: int, path: tuple[str, ...]) -> Rejected:
    """A JSON object that lacks the array which holds the records elsewhere in the file."""
    detail = f"an object without the array {'.'.join(path)!r}"
    return _rejected(source, position, "not_a_record", detail)


def above_heading(source: str, position: int, text: str) -> Rejected:
    """A line above the heading of a table: its title, or what the table's program says of it."""
    return _rejected(source, position, "not_a_record", "a line above the heading", text)


def too_long(source: str, position: int, text: str) -> Rejected:
    """A line or record above the size that one record may have."""
    detail = f"longer than {MAX_RECORD_BYTES >> 20} MiB"
    return _rejected(source, position, "too_long", detail, text)


def truncated(source: str, position: int, detail: str, text: str = "") -> Rejected:
    """Input that ends before it should; what came before was read."""
    return _rejected(source, position, "truncated", detail, text)


def bad_csv(source: str, position: int, error: Exception, text: str) -> Rejected:
    """A row that the CSV parser refuses."""
    return _rejected(source, position, "bad_csv", str(error), text)


def binary(source: str) -> Rejected:
    """A file that holds no text."""
    return _rejected(source, 0, "binary", "the file does not hold text")


def unreadable(source: str, position: int, error: OSError) -> Rejected:
    """A file that was found and cannot be opened or read."""
    return _rejected(source, position, "unreadable", str(error))
