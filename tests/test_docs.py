"""What the documents tell a user to type is understood by the command as it is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
import yaml
from pydantic import BaseModel

from job.cli import app
from job.config_file import ConfigFile
from job.run_folder import OWN_FILES

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(path: Path, language: str) -> list[str]:
    """The code blocks of a document that are marked with `language`."""
    pieces = re.split(r"^```(.*)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    inside = zip(pieces[1::4], pieces[2::4], strict=True)
    return [text for marked, text in inside if marked.strip() == language]


def commands() -> list[tuple[str, str]]:
    """Every command line that starts `fupan`, with its document."""
    found = []
    for path in DOCUMENTS:
        for line in "".join(blocks(path, "")).splitlines():
            text = line.split("#")[0].removesuffix("&").strip()
            text = re.sub(r"^(\w+=\S+ )+", "", text)
            if text.startswith("fupan "):
                found.append((path.name, text))
    return found


@pytest.mark.parametrize(("document", "line"), commands())
def test_a_command_in_the_documents_is_one(document: str, line: str) -> None:
    name, *arguments = shlex.split(line)[1:]
    group = typer.main.get_command(app)
    command = group.commands[name]  # type: ignore[attr-defined]
    command.make_context(name, arguments)


def test_there_are_commands_to_check() -> None:
    assert len(commands()) >= 4


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_configuration_in_the_documents_is_valid(path: Path) -> None:
    for block in blocks(path, "yaml"):
        ConfigFile.model_validate(yaml.safe_load(block))


def keys_of(model: type[BaseModel]) -> Iterator[str]:
    """Every key that a model of fupan.yaml knows, those inside its values too."""
    for name, field in model.model_fields.items():
        yield field.alias or name
        for inner in models_in(field.annotation):
            yield from keys_of(inner)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


def keys_in(value: Any) -> Iterator[str]:
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from keys_in(inner)
    yield from value if isinstance(value, dict) else ()


def test_every_key_of_the_configuration_is_documented() -> None:
    [whole] = blocks(ROOT / "docs" / "configuration.md", "yaml")
    assert set(keys_of(ConfigFile)) - set(keys_in(yaml.safe_load(whole))) == set()


def test_every_option_of_a_run_is_documented() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    group = typer.main.get_command(app)
    run = group.commands["run"]  # type: ignore[attr-defined]
    options = {name for each in run.params for name in each.opts if name.startswith("--")}
    assert options - {"--help"} == set(re.findall(r"`(--[a-z-]+)`", text.split("## Flags")[1]))


def test_every_file_of_a_run_is_documented() -> None:
    text = (ROOT / "docs" / "output.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in OWN_FILES)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert "://" in target or (path.parent / target).exists(), target
