"""API keys: hashed at rest, read again as their file changes, never repeated."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from serve.ask.errors import Misconfigured
from serve.gateway.contract import Target
from serve.gateway.errors import NotAuthorized
from serve.gateway.keys import LOOK_SECONDS, KeyRing, digest_of, new_key, parse_keys
from serve.gateway.settings import ServeSettings


class Now:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def line(name: str, key: str, more: str = "") -> str:
    return f'- {{"name": "{name}", "tenant": "shop", "sha256": "{digest_of(key)}"{more}}}\n'


@pytest.fixture
def now() -> Now:
    return Now()


def test_a_key_is_known_by_its_hash_and_a_wrong_one_is_not(tmp_path: Path, now: Now) -> None:
    key = new_key()
    assert len(key) >= 3 + 43
    file = tmp_path / "keys.yaml"
    file.write_text(line("web", key))
    ring = KeyRing(file, clock=now)
    record = ring.record(f"Bearer {key}")
    assert record is not None
    assert (record.name, record.tenant, record.limited) == ("web", "shop", False)
    assert ring.record(f"bearer  {key} ") == record
    for wrong in (None, "", key, f"Basic {key}", "Bearer", f"Bearer {key}x", f"Bearer {new_key()}"):
        with pytest.raises(NotAuthorized) as refused:
            ring.record(wrong)
        assert key not in refused.value.message


def test_where_no_keys_are_set_up_everybody_may_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUPAN_KEYS", raising=False)
    assert KeyRing.load(ServeSettings()).record(None) is None


def test_an_empty_variable_or_file_name_lets_nobody_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUPAN_KEYS", "")
    with pytest.raises(Misconfigured, match=r"FUPAN_KEYS .* is empty"):
        KeyRing.load(ServeSettings())
    with pytest.raises(ValidationError, match="keys"):
        ServeSettings(keys="")


def test_a_file_without_keys_lets_nobody_in(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text("# none yet\n")
    with pytest.raises(NotAuthorized):
        KeyRing(file).record(f"Bearer {new_key()}")


def test_the_variable_is_read_by_its_own_and_by_its_usual_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key, other = new_key(), new_key()
    monkeypatch.setenv("FUPAN_KEYS", line("web", key))
    monkeypatch.setenv("OTHERS", f'[{{"name":"b","tenant":"b","sha256":"{digest_of(other)}"}}]')
    by_default = KeyRing.load(ServeSettings())
    assert by_default.record(f"Bearer {key}") is not None
    named = KeyRing.load(ServeSettings(keys_env="OTHERS"))
    assert named.record(f"Bearer {other}") is not None
    with pytest.raises(NotAuthorized):
        named.record(f"Bearer {key}")
    monkeypatch.delenv("OTHERS")
    with pytest.raises(Misconfigured, match="OTHERS"):
        KeyRing.load(ServeSettings(keys_env="OTHERS"))


def test_a_revoked_key_ends_within_a_second_and_the_file_is_not_looked_at_before(
    tmp_path: Path, now: Now
) -> None:
    kept, revoked = new_key(), new_key()
    file = tmp_path / "keys.yaml"
    file.write_text(line("kept", kept) + line("revoked", revoked))
    ring = KeyRing(file, clock=now)
    file.write_text(line("kept", kept))
    assert ring.record(f"Bearer {revoked}") is not None
    now.at += LOOK_SECONDS
    with pytest.raises(NotAuthorized):
        ring.record(f"Bearer {revoked}")
    assert ring.record(f"Bearer {kept}") is not None


def test_a_change_that_leaves_time_and_size_as_they_were_is_seen(tmp_path: Path, now: Now) -> None:
    old, new = new_key(), new_key()
    file = tmp_path / "keys.yaml"
    file.write_text(line("web", old))
    was = file.stat()
    ring = KeyRing(file, clock=now)
    with file.open("r+") as same:
        same.write(line("web", new))
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert file.stat().st_size == was.st_size
    now.at += LOOK_SECONDS
    assert ring.record(f"Bearer {new}") is not None


@pytest.mark.parametrize("broken", ["- {", "web: 1\n", '- {"name": "web"}\n', None])
def test_a_file_that_makes_no_sense_any_more_changes_nothing_and_says_so_once(
    tmp_path: Path, now: Now, broken: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    key, later = new_key(), new_key()
    file = tmp_path / "keys.yaml"
    file.write_text(line("web", key))
    ring = KeyRing(file, clock=now)
    if broken is None:
        file.unlink()
    else:
        file.write_text(broken)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            now.at += LOOK_SECONDS
            assert ring.record(f"Bearer {key}") is not None
    assert len(caplog.records) == 1
    assert "keys.yaml" in (ring.problem or "")
    file.write_text(line("web", later))
    now.at += LOOK_SECONDS
    assert ring.record(f"Bearer {later}") is not None
    assert ring.problem is None


@pytest.mark.parametrize(
    "text",
    [
        '- {{name: web, tenant: web, sha256: "{key}"}}',
        "- {{name: web, tenant: web, key: {key}}}",
        "- {key}",
        "- {{name: {key}, tenant: web}}",
    ],
)
def test_a_key_in_plain_text_is_refused_and_not_repeated(text: str) -> None:
    key = new_key()
    with pytest.raises(Misconfigured, match="fupan keys new") as refused:
        parse_keys(text.format(key=key), "keys.yaml")
    assert key[3:] not in str(refused.value)
    assert "keys.yaml, key 1" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("web: {}", "must be a list"),
        ("- [", "line 1 cannot be read"),
        ("- {name: web, tenant: web, sha256: abc}", "sha256"),
        ("- {name: 'a b', tenant: web, sha256: %s}", "name"),
        ("- {name: web, tenant: web, sha256: %s, rpm: 0}", "rpm"),
        ("- {name: web, tenant: web, sha256: %s, color: red}", "color"),
        ("- name: web\n  rpm: 5\n  rpm: 6", "line 3 holds a field twice"),
        ("- {name: a, tenant: a, sha256: %s}\n- {name: b, tenant: b, sha256: %s}", "twice"),
    ],
)
def test_what_makes_no_sense_is_named(text: str, said: str) -> None:
    with pytest.raises(Misconfigured, match=said):
        parse_keys(text.replace("%s", f'"{digest_of("x")}"'), "keys.yaml")


def test_two_keys_of_one_name_are_refused() -> None:
    with pytest.raises(Misconfigured, match="two keys 'web'"):
        parse_keys(line("web", "one") + line("web", "other"), "keys.yaml")


def test_a_key_may_ask_for_the_models_that_it_names() -> None:
    small, large = Target("a", "small"), Target("a", "large")
    (record,) = parse_keys(line("web", "x", ', "models": ["small", "own"]'), "keys.yaml")
    assert record.allows("small", [small])
    assert record.allows("a/small", [small])
    assert record.allows("own", [small, large])
    assert not record.allows("a/large", [large])
    assert not record.allows("auto", [small, large])
    assert not record.allows("auto", [])
    (full,) = parse_keys(line("web", "x", ', "models": ["a/small"]'), "keys.yaml")
    assert full.allows("small", [small])
    assert not full.allows("small", [Target("b", "small")])
