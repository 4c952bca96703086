from __future__ import annotations

import os
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\ntwo\r\n\tthree", "one two   three"),
        ("\x1b[2Jgone\x07\x9b31m", "\ufffd[2Jgone\ufffd\ufffd31m"),
        ("evil\u202etxt.exe\u2066", "evil\ufffdtxt.exe\ufffd"),
        ("a\u2028b", "a b"),
        (os.fsdecode(b"caf\xe9.log"), "caf\\xe9.log"),
        ("half \ud83d of one", "half \\ud83d of one"),
        ("扣款失败 👩‍💻 café", "扣款失败 👩‍💻 café"),
    ],
)
def test_what_a_terminal_shows(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters()))
def test_anything_is_one_line_without_commands(text: str) -> None:
    shown = printable(text)
    assert len(f"{shown}x".splitlines()) == 1
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in shown)
    assert not any(unicodedata.bidirectional(c) in ("RLO", "LRO", "RLE", "LRE") for c in shown)
    assert printable(shown) == shown
    shown.encode()
