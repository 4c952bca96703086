"""cluster.yaml, as Ray's cluster launcher understands it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "cluster.yaml").read_text()


@pytest.fixture(scope="module")
def prepared() -> dict[str, Any]:
    """What the launcher makes of the file before it starts anything."""
    from ray.autoscaler._private.util import prepare_config, validate_config

    config: dict[str, Any] = prepare_config(yaml.safe_load(TEXT))
    validate_config(config)
    return config


def test_the_launcher_takes_it_and_finds_a_head_without_work(prepared: dict[str, Any]) -> None:
    kinds = prepared["available_node_types"]
    assert kinds[prepared["head_node_type"]]["resources"] == {"CPU": 0}
    workers = {name: kind for name, kind in kinds.items() if name != prepared["head_node_type"]}
    with_gpu = [kind for kind in workers.values() if kind["resources"].get("GPU")]
    without = [kind for kind in workers.values() if not kind["resources"].get("GPU")]
    assert without[0]["min_workers"] >= 1
    assert [kind["min_workers"] for kind in with_gpu] == [0]
    assert sum(kind["max_workers"] for kind in workers.values()) == prepared["max_workers"]


def test_nothing_is_open_to_the_world(prepared: dict[str, Any]) -> None:
    assert "0.0.0.0" not in TEXT  # noqa: S104
    assert "::/0" not in TEXT
    for kind in prepared["available_node_types"].values():
        # Without a group of the user's the launcher makes one that opens port 22 to everybody.
        assert kind["node_config"]["SecurityGroupIds"]
    (head,) = (c for c in prepared["head_start_ray_commands"] if "ray start" in c)
    (worker,) = (c for c in prepared["worker_start_ray_commands"] if "ray start" in c)
    assert "--dashboard-host=127.0.0.1" in head
    for command in (head, worker):
        assert "RAY_AUTH_MODE=token" in command
        assert ". ~/.fupan/env" in command


def test_every_placeholder_is_marked(prepared: dict[str, Any]) -> None:
    placeholders = re.compile(r"(?:ami|subnet|sg)-([01])\1{7,}")
    lines = TEXT.splitlines()
    found = [n for n, line in enumerate(lines) if placeholders.search(line)]
    assert len(found) >= 4
    for n in found:
        assert "CHANGE" in lines[n] or "CHANGE" in lines[n - 2]
    assert prepared["provider"]["region"]


def test_what_is_mounted_exists_and_versions_are_those_of_the_project(
    prepared: dict[str, Any],
) -> None:
    for local in prepared["file_mounts"].values():
        assert local.startswith("~") or (ROOT / local).exists()
    pins = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    gpu = prepared["available_node_types"]["gpu_worker"]["docker"]["worker_image"]
    for image in (prepared["docker"]["image"], gpu):
        assert re.fullmatch(rf"rayproject/ray:{re.escape(pins['ray'])}-py311-[cg]pu", image)
