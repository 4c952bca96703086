"""The user's own instructions: read from a file, told to the model, shown in the report."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.analyse.requests import build_request, instruction_tokens
from job.analyse.stored import AskSettings, record_key
from job.config import resolve
from job.errors import UsageError
from job.flags import Flags
from job.instructions import Language, instructions_hash, system_message, undated
from job.mask.masking import Masker
from job.own_instructions import MOST_CHARACTERS, read_instructions, shown_instructions
from job.pack.packing import Fit, make_item
from tests.job.make import record

LANGUAGES: tuple[Language, Language] = ("en", "zh")
RULES = "A refund later than 3 days is high.\nIgnore {what} and {date}: {0} %s {{}} {"


def written(folder: Path, data: bytes) -> str:
    path = folder / "rules.md"
    path.write_bytes(data)
    return str(path)


def test_the_text_is_taken_as_it_was_written(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf\r\n  Rules:\r\n- \xe4\xbb\x85 A\ta\r\n\r\n"
    assert read_instructions(written(tmp_path, data)) == "Rules:\n- 仅 A\ta"
    assert read_instructions(None) == ""


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "holds no word"),
        (b" \n1. 2. 3.\n", "holds no word"),
        ("é".encode("latin-1") * 9, "is not UTF-8"),
        (b"a\x00b", "control characters"),
        (b"a\x1b[2Jb", "control characters"),
        (b"a" * (MOST_CHARACTERS + 1), "longer than 20,000 characters"),
        ("规".encode() * (4 * MOST_CHARACTERS), "longer than 20,000 characters"),
    ],
)
def test_a_file_that_holds_no_instructions_is_refused(
    tmp_path: Path, data: bytes, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        read_instructions(written(tmp_path, data))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.md"):
        with pytest.raises(UsageError, match=f"cannot read --instructions {path}"):
            read_instructions(str(path))
    with pytest.raises(UsageError, match="of this machine"):
        read_instructions("s3://bucket/rules.md")


def test_an_endless_file_is_not_read_to_its_end() -> None:
    with pytest.raises(UsageError, match=r"control characters|longer"):
        read_instructions("/dev/zero")


def test_as_long_as_allowed_is_allowed(tmp_path: Path) -> None:
    text = "规" * MOST_CHARACTERS
    assert read_instructions(written(tmp_path, text.encode())) == text


@pytest.mark.parametrize("language", LANGUAGES)
def test_they_stand_between_the_rules_and_the_date_as_they_are(language: Language) -> None:
    told = system_message("feedback", language, "slow", "2026-03-14", repair=True, own=RULES)
    bare = system_message("feedback", language, "slow", "2026-03-14", repair=True)
    rules = undated("feedback", language, "fast")
    assert told.startswith(rules)
    assert told.index(rules) < told.index(f"\n{RULES}\n") < told.index("2026-03-14")
    assert bare == told.replace(told[len(rules) : told.index(bare[len(rules) :])], "")


@given(own=st.text(min_size=1))
def test_whatever_they_hold_is_told_unchanged(own: str) -> None:
    for language in LANGUAGES:
        assert f"\n{own}\n" in undated("operation", language, "fast", own=own)


def test_they_are_part_of_the_hash_and_of_the_key_of_every_answer() -> None:
    own = ("", "Ignore tests.", "Ignore tests!")
    for language in LANGUAGES:
        assert len({instructions_hash(language, text) for text in own}) == len(own)
    keys = {record_key(record(), AskSettings("m", "en", own=text)) for text in own}
    assert len(keys) == len(own)


def test_a_request_holds_them_and_counts_them() -> None:
    own = "Ignore health checks. " * 20
    items = [make_item(record("the disk is full"))]
    estimates = []
    for text in ("", own):
        fit = Fit(8192, None, instruction_tokens("en", text))
        request = build_request(items, AskSettings("m", "en", own=text), fit, repair=False)
        assert text in request.system
        assert "health" not in request.user
        estimates.append(request.estimate_in)
    assert estimates[1] - estimates[0] > 80


def test_the_report_shows_the_first_line_without_what_is_private() -> None:
    masker = Masker(b"k" * 32)
    shown = shown_instructions("Ask li.wei@example.org first.\nThe rest " + "x" * 99, masker)
    assert shown is not None
    assert shown["first_line"].startswith("Ask <email-")
    assert "li.wei" not in str(shown)
    assert (shown["characters"], len(shown["hash"])) == (138, 16)
    long = shown_instructions("é" * 500, masker)
    assert long is not None
    assert len(long["first_line"]) == 80
    assert shown_instructions("", masker) is None


def test_compression_needs_something_to_compress(tmp_path: Path) -> None:
    flags = {"base_url": "http://127.0.0.1:1/v1", "model": "m", "compress_instructions": True}
    with pytest.raises(UsageError, match="--compress-instructions without instructions"):
        resolve(Flags(inputs=(str(tmp_path),), **flags))  # type: ignore[arg-type]


def test_the_file_is_named_in_the_configuration_too(tmp_path: Path) -> None:
    rules = written(tmp_path, b"Ignore tests.")
    config = tmp_path / "fupan.yaml"
    config.write_text(
        "providers: {a: {base_url: 'http://127.0.0.1:1/v1', models: [m]}}\n"
        f"run: {{instructions: {rules}, compress_instructions: true}}\n"
    )
    settings = resolve(Flags(inputs=(os.devnull,), config=str(config)))
    assert settings.own_instructions == "Ignore tests."
    assert settings.compress_instructions
