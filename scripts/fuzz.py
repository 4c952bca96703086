"""Coverage-guided fuzzing of reading and cleaning: any bytes under any file name.

    python -m scripts.fuzz --seconds 600 [CORPUS]

Needs the extra `fuzz` (atheris). Each input is a file with a name, read once whole and once in
slices of some size. What must hold: nothing raises, `read = records + rejected + skipped`, every id
once, the same rows however the file was cut. A finding is left beside the corpus as
`CORPUS-crash-...`; its smallest form belongs into the tests.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import tempfile
from datetime import UTC, date
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["job"]):
    from job.clean.cleaner import Cleaner, CleanSettings
    from job.mask.masking import Masker
    from job.read import FilePlan, plan_inputs, read_slice, slices, weave
    from job.records import Raw, Record, Rejected, SliceCounts

NAMES = ("a.log", "a.jsonl", "a.json", "a.csv", "a.tsv", "a", "a.log.gz", "a.jsonl.zst", "a.txt")
REFERENCE = date(2024, 3, 6)
MAPS: tuple[dict[str, str], ...] = (
    {},
    {"text": "a.b", "time": "t", "user": "u", "session": "s", "level": "l", "rating": "r"},
)
MASKER = Masker(b"k" * 32)
LONGEST = 2048
"""Bytes of an input: windows and samples are larger, what they hold is not."""

SEEDS = (
    "2024-03-05 12:00:00 ERROR boom\nTraceback (most recent call last):\n  File x\nKeyError: 'a'\n",
    "Mar  5 12:00:00 h app[1]: x\nMar  5 12:00:01 h last message repeated 3 times\n",
    "Dec 31 23:59:59 h app[1]: message repeated 5 times: [ x]\nJan  1 00:00:00 h app[1]: y\n",
    '{"time": 1709640000, "level": "info", "msg": "a", "msg": "b"}\nlevel=info msg="x y"\n',
    '{"log": "{\\"level\\":\\"error\\",\\"msg\\":\\"x\\"}\\n", "stream": "stderr", "time": "t"}\n'
    * 2,
    "web-1  | 2024-03-05 12:00:00 a\ndb-1   | Traceback\nweb-1  |   File x\n",
    "2024-03-05T12:00:00.1Z stderr P a\n2024-03-05T12:00:00.1Z stdout F b\n",
    '{"session": "s", "role": "user", "content": "hi"}\n' * 2
    + '{"session": "s", "role": "bot", "content": 1}\n',
    '[{"a": NaN, "b": "\\ud800"}, {"messages": [{"role": "user", "content": ["x", {"t": 1}]}]}]',
    '{"Records": [{"id": 12345678901234567890}], "next": null}',
    'id,text,stars\n1,"a ""b""\r\nc",5\n2,"half,4\n3,x,1,2\n',
    'id\ttext\n1\t"a\n2\tb\n',
    "用户,评价\n张三,很好\n",
    "\ufeff20171223-22:15:29:606|Step|3|a\n",
)

WORDS = (
    "\n2024-03-05 12:00:00 ERROR ", "\nMar  5 12:00:00 h app[1]: ", "\nweb-1  | ", "\ndb-1   | ",
    "\n2024-03-05T12:00:00.1Z stdout F ", "\n2024-03-05T12:00:00.1Z stderr P ", "\n1709640000 ",
    "Traceback (most recent call last):", "\n  File \"x\"", "\n\tat a.b", "KeyError: 'a'",
    "message repeated 2 times: [ ", " last message repeated 2 times", "\x1b[31m", "\r\n", '""', '"',
    '\n{"session": "s", "role": "user", "content": "x"}', '\n{"log": "x\\n", "stream": "stdout"}',
    '{"', '": ', '": {"', "NaN", "\\ud800", "\\u0000", "level=info ", "\x85", "\u2028", "\ufeff",
)  # fmt: skip
"""What bytes are put together from, beside themselves."""


def check(
    name: str, content: bytes, slice_bytes: int, mapping: dict[str, str], window: int = 1 << 20
) -> None:
    """Raise AssertionError where one of the promises is broken."""
    # A window no larger than the input, so that slices look back to its edge and beyond.
    vars(slices)["WINDOW_BYTES"] = vars(weave)["WINDOW_BYTES"] = window
    with tempfile.TemporaryDirectory(dir=_FOLDER) as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        whole = _rows(_planned(path, 1 << 30), mapping)
        parts = _rows(_planned(path, slice_bytes), mapping)
    _hold(whole == parts, f"{len(whole)} rows whole, {len(parts)} in slices")


def _planned(path: Path, slice_bytes: int) -> FilePlan:
    plan = plan_inputs([str(path)], reference=REFERENCE, zone=UTC, slice_bytes=slice_bytes)
    return plan.files[0]


def _rows(file: FilePlan, mapping: dict[str, str]) -> list[str]:
    counts = SliceCounts(file.source, 0)
    cleaner = Cleaner(CleanSettings(REFERENCE, UTC, MASKER, map=mapping), counts)
    raws: list[Raw | Rejected] = [row for part in file.slices for row in read_slice(part)]
    rows = [cleaner.clean(raw) for raw in raws]
    ids = [row.id for row in rows if isinstance(row, Record)]
    _hold(len(set(ids)) == len(ids), "an id came twice")
    accounted = counts.records + counts.rejected + counts.skipped
    _hold(counts.read == accounted == len(raws), "the account does not balance")
    for row in rows:
        repr(row).encode()
    return [repr(row) for row in rows]


def _hold(promise: bool, broken: str) -> None:
    if not promise:
        raise AssertionError(broken)


def one_input(data: bytes) -> None:
    """The target: three bytes of choices, then the file."""
    if len(data) < 3:
        return
    name = NAMES[data[0] % len(NAMES)]
    content = data[3 : 3 + LONGEST]
    if data[2] & 2:
        content = gzip.compress(content, mtime=0)[: None if data[2] & 4 else -9]
    check(name, content, 1 + data[1], MAPS[data[2] & 1], 1 << 20 if data[2] & 8 else 60)


def _quoted(word: str) -> str:
    """As libFuzzer's dictionaries have it: every byte in hexadecimal."""
    return "".join(f"\\x{byte:02x}" for byte in word.encode())


def main() -> None:
    """Fuzz for so many seconds; the figures are libFuzzer's, the last line is `DONE`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", nargs="?", default="fuzz-corpus")
    parser.add_argument("--seconds", type=int, default=600)
    options = parser.parse_args()
    corpus = Path(options.corpus)
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS):
        for kind in range(len(NAMES)):
            file = corpus / f"seed-{number:02d}-{kind}"
            file.write_bytes(
                bytes((kind, 20, number % 2 * 8)) + seed.encode("utf-8", "surrogatepass")
            )
    words = corpus.parent / f"{corpus.name}.dict"
    words.write_text("".join(f'"{_quoted(word)}"\n' for word in WORDS))
    arguments = [
        f"-dict={words}",
        f"-max_total_time={options.seconds}",
        f"-max_len={LONGEST + 3}",
        "-len_control=10",
        "-timeout=20",
        "-rss_limit_mb=4096",
        "-print_final_stats=1",
        f"-artifact_prefix={corpus.parent / corpus.name}-",
        str(corpus),
    ]
    atheris.Setup([sys.argv[0], *arguments], one_input)
    atheris.Fuzz()


_FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108

if __name__ == "__main__":
    main()
