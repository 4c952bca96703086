"""A file that is wrong: it is said where, and no secret is repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from job.config_file import load_config
from job.errors import UsageError


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("runn: {}", "runn: unknown key, did you mean run"),
        ("run: {provder: x}", "run.provder: unknown key, did you mean provider"),
        (
            "inputs: [{path: x, kinds: x}]",
            r"inputs.0.kinds: .* kind\? \(known: path, kind, map, skip",
        ),
        (
            "providers: {a: {base_url: 'https://x', models: [m], limits: {rqm: 1}}}",
            "did you mean rpm",
        ),
        ("inputs: [{kind: operation}]", "inputs.0.path: is missing"),
        ("search: {runs: []}", r"search.runs: must have at least 1 entry$"),
        ("search: {runs: [{path: ''}]}", r"search.runs.0.path: must not be empty$"),
        ("search: {runs: retro}", r"search.runs: must be a list$"),
        ("search: {}", r"search.runs: is missing$"),
        ("inputs: [{path: x, skip: health}]", "inputs.0.skip: must be a list"),
        ("inputs: {path: x}", "inputs: must be a list"),
        ("inputs: [{path: x, map: {level: 5}}]", "inputs.0.map.level: must be text"),
        ("run: {max_failed: 2}", "run.max_failed"),
        ("providers: {a: {base_url: 'ftp://x', models: [m]}}", "base_url"),
        ("providers: {a: {base_url: 'https://u:p@x', models: [m]}}", "belong in the environment"),
        ("providers: {a: {base_url: 'https://x', models: []}}", "models"),
        (
            "inputs: [{path: x, kind: poem}]",
            "kind: must be 'conversation', 'operation' or 'feedback'",
        ),
        ("a: [", "not valid YAML"),
        ("run: {out: a}\ninputs: []\nrun: {out: b}", "yaml, line 3.*'run' stands twice, in line 1"),
        ("run: {out: a, mode: single, out: b}", "line 1, column 29: 'out' stands twice"),
        ("[]", "dictionary"),
        ("providers: {extractive: {base_url: 'https://x', models: [m]}}", "built in"),
        ("providers: {local: {base_url: 'https://x', models: [m]}}", "built in"),
        ("providers: {a/b: {base_url: 'https://x', models: [m]}}", "NAME/MODEL"),
        ("providers: {a: {base_url: 'https://x/v1?k=1', models: [m]}}", "query or a fragment"),
        ("providers: {a: {base_url: 'https://x/v1#k', models: [m]}}", "query or a fragment"),
        ("providers: {a: {base_url: 'https://x:99999/v1', models: [m]}}", "not an http"),
        ("providers: {a: {base_url: 'https://x', models: [m], limits: {rpm: .inf}}}", "rpm"),
        ("inputs: [{path: x, map: {txt: content}}]", "'txt'.*rating"),
        ("run: {date: 2026-02-31}", "day"),
        ("run: {max_failed: .nan}", "max_failed"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, change: str, said: str) -> None:
    path = tmp_path / "fupan.yaml"
    path.write_text(change)
    with pytest.raises(UsageError, match=said):
        load_config(str(path))


def test_a_file_that_is_not_utf8_says_so(tmp_path: Path) -> None:
    path = tmp_path / "fupan.yaml"
    path.write_bytes("run: {out: 复盘}".encode("gb18030"))
    with pytest.raises(UsageError, match="not UTF-8"):
        load_config(str(path))


@pytest.mark.parametrize(
    "text",
    [
        "providers: {a: {base_url: 'ftp://u:hunter2@x', models: [m]}}",
        "providers: {a: {base_url: 'https://u:hunter2@x/v1', models: [m]}}",
        "providers: {a: {base_url: 'https://x/v1?key=hunter2', models: [m]}}",
        "providers: {a: {base_url: 'nothing://u:hun/ter2@x', models: [m]}}",
        "providers: {a: {base_url: 'https://x', key_env: sk-hunter2, models: [m]}}",
        "providers: {a: {base_url: 'https://u:hunter2@x' models: [m]}}",
        "providers: {a: {base_url: 'https://x', models: hunter2}}",
    ],
)
def test_a_secret_in_the_file_is_not_repeated(tmp_path: Path, text: str) -> None:
    path = tmp_path / "fupan.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_config(str(path))
    assert "hunter2" not in str(caught.value)
    assert "hun/ter2" not in str(caught.value)
