"""What a node must have, as it looks at itself. (Two real nodes: tests/test_submit.py.)"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import ray

from job.cluster import cluster
from job.reach import Needs, _answer, _look_at
from job.storage.place import Place
from serve.ask.settings import Provider

VARIABLE = "FUPAN_TEST_REACH_KEY"
KEY = "sk-of-the-head"
HASH = hashlib.sha256(KEY.encode()).hexdigest()
PROVIDER = Provider(base_url="https://llm.example/v1", key_env=VARIABLE, models=("m",))


@pytest.fixture
def mark(tmp_path: Path) -> Place:
    (tmp_path / "seen").touch()
    return Place.of(tmp_path / "seen")


def test_a_node_that_has_everything_lacks_nothing_and_leaves_nothing(
    mark: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    assert Needs(mark, [mark], PROVIDER, HASH).lacking() is None
    assert [place.name for place in mark.parent.iterdir()] == ["seen"]


def test_a_folder_or_an_input_that_is_not_there_is_named(mark: Place) -> None:
    elsewhere = mark.parent / "elsewhere"
    assert Needs(elsewhere / "seen", [], None, None).lacking() == "does not see --out"
    assert Needs(mark, [mark, elsewhere], None, None).lacking() == f"does not see {elsewhere}"


@pytest.mark.parametrize("own", [None, "sk-of-somebody-else"])
def test_a_node_with_another_key_or_none_is_told_by_the_name_of_the_variable(
    mark: Place, monkeypatch: pytest.MonkeyPatch, own: str | None
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if own is not None:
        monkeypatch.setenv(VARIABLE, own)
    lacking = Needs(mark, [], PROVIDER, HASH).lacking()
    assert lacking == f"has another key in {VARIABLE} than the head, or none"


@pytest.mark.ray
def test_a_node_that_fails_at_the_look_is_told(mark: Place) -> None:
    needs = Needs(mark, [Place("nowhere://store", "x")], None, None)
    with cluster(own=True):
        said = _answer(_look_at(ray.nodes()[0]["NodeID"], needs))
    assert said is not None
    assert said.startswith("cannot run this code (cannot open 'nowhere://store'")
