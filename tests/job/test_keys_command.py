"""The command `fupan keys`: the key is shown once, the file holds its hash."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner, Result

from job.cli import app
from serve.gateway.keys import KeyRing, digest_of, parse_keys


def command(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["keys", *map(str, words)])


def test_a_new_key_works_with_the_line_that_is_printed(tmp_path: Path) -> None:
    made = command(
        *("new", "web", "--tenant", "shop", "--rpm", "60", "--tpm", "1e5"),
        *("--max-spend", "12.5", "--currency", "CNY", "--model", "auto", "--model", "a/b"),
    )
    assert made.exit_code == 0, made.stderr
    key = made.stderr.split()[-1]
    assert key not in made.stdout
    file = tmp_path / "keys.yaml"
    file.write_text(made.stdout + command("new", "other").stdout)
    record = KeyRing(file).record(f"Bearer {key}")
    assert record is not None
    assert record.model_dump(exclude={"sha256"}) == {
        "name": "web",
        "tenant": "shop",
        "rpm": 60.0,
        "tpm": 100_000.0,
        "max_spend": Decimal("12.5"),
        "currency": "CNY",
        "models": ("auto", "a/b"),
    }
    listed = command("list", file).stdout.splitlines()
    assert listed[0].startswith("web: tenant shop, 60 requests/min, 100,000 tokens/min, 12.5 CNY/")
    assert listed[1].startswith("other: tenant other, no limits, all models, sha256 ")
    assert record.sha256 not in listed[0]
    rows = [orjson.loads(line) for line in command("list", file, "--json").stdout.splitlines()]
    assert [row["name"] for row in rows] == ["web", "other"]


def test_a_script_gets_both_as_json() -> None:
    told = orjson.loads(command("new", "web", "--json").stdout)
    (record,) = parse_keys(told["line"], "line")
    assert record.sha256 == digest_of(told["key"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("new", "a b"), "NAME 'a b'"),
        (("new", "web", "--tenant", "x/y"), "--tenant 'x/y'"),
        (("new", "web", "--rpm", "-1"), "--rpm -1.0"),
        (("new", "web", "--max-spend", "lots"), "--max-spend 'lots'"),
        (("new", "web", "--currency", "CNY"), "--currency"),
        (("list", "nowhere.yaml"), "cannot read nowhere.yaml"),
        (("list", "keys.yaml", "--rpm", "3"), "limits belong to `fupan keys new`"),
    ],
)
def test_what_makes_no_sense_is_said(words: tuple[str, ...], said: str) -> None:
    refused = command(*words)
    assert refused.exit_code == 2
    assert said in refused.stderr
    assert refused.stdout == ""


def test_a_file_with_a_key_in_it_is_refused_and_the_key_not_repeated(tmp_path: Path) -> None:
    key = orjson.loads(command("new", "web", "--json").stdout)["key"]
    file = tmp_path / "keys.yaml"
    file.write_text(f"- {{name: web, tenant: web, sha256: {key}}}\n")
    refused = command("list", file)
    assert refused.exit_code == 2
    assert "plain text" in refused.stderr
    assert key not in refused.stderr
