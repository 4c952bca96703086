"""The application as Ray Serve's config files describe it; nothing is started."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError
from ray.serve.config import AutoscalingConfig
from ray.serve.schema import ServeDeploySchema
from ray.serve.scripts import cli as ray_serve_cli

from job.commands.serve_command import gateway_settings
from serve import app
from serve.app import APPLICATION, ASIDE, DEPLOYMENT, LONGER, application, build, read_settings
from serve.gateway.settings import GatewaySettings
from serve.models.app import build as build_model
from serve.models.calls import APPLICATION as MODEL_APPLICATION

SERVE = Path(app.__file__).parent
PROVIDERS = {
    "main": {
        "base_url": "https://llm.example/v1",
        "key_env": "LLM_API_KEY",
        "models": ["small", "large"],
        "json": "object",
        "prices": {"small": {"input": "0.1", "output": "0.25"}},
    }
}


def deployment(built: Any) -> Any:
    return built._bound_deployment


def config_file(name: str) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((SERVE / name).read_text(encoding="utf-8"))
    return data


@pytest.mark.parametrize("name", ["development.yaml", "production.yaml"])
def test_the_config_files_are_what_serve_reads(name: str) -> None:
    read = ServeDeploySchema.model_validate(config_file(name))
    gateway, *models = read.applications
    assert gateway.name == APPLICATION
    assert gateway.import_path == f"{app.__name__}:{build.__name__}"
    assert all(each.name == DEPLOYMENT for each in gateway.deployments)
    for model in models:
        assert model.name == MODEL_APPLICATION.format(model.args["model"])
        assert model.import_path == f"{build_model.__module__}:{build_model.__name__}"
        assert model.args["model"] in read_settings(gateway.args).models
        assert model.route_prefix is None


def test_production_scales_as_the_command_does() -> None:
    (options,) = config_file("production.yaml")["applications"][0]["deployments"]
    assert AutoscalingConfig.model_validate(options["autoscaling_config"]) == app.autoscaling()
    assert options["ray_actor_options"]["memory"] >= 2**30


def test_the_providers_of_a_config_file_can_stand_in_it() -> None:
    args = config_file("development.yaml")["applications"][0]["args"]
    assert deployment(build(args)).name == DEPLOYMENT


def test_a_fupan_yaml_is_read_without_what_is_the_jobs(tmp_path: Path) -> None:
    file = tmp_path / "fupan.yaml"
    given = {"providers": PROVIDERS, "serve": {"timeout": 30}, "run": {"language": "zh"}}
    file.write_text(yaml.safe_dump(given), encoding="utf-8")
    settings = read_settings({"config": str(file)})
    assert settings.serve.timeout == 30
    assert settings == read_settings({"providers": PROVIDERS, "serve": {"timeout": 30}})
    assert settings == read_settings({"config": str(file), "revision": 2})


def test_paths_in_a_fupan_yaml_are_seen_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "fupan.yaml"
    serve = {"keys": "keys.yaml", "state": "/var/lib/fupan"}
    file.write_text(yaml.safe_dump({"providers": PROVIDERS, "serve": serve}), encoding="utf-8")
    settings = read_settings({"config": str(file)})
    assert settings.serve.keys == str(tmp_path / "keys.yaml")
    assert settings.serve.state == "/var/lib/fupan"
    monkeypatch.setenv("LLM_API_KEY", "set")
    assert gateway_settings(str(file)) == settings


@pytest.mark.parametrize("name", ["keys", "state"])
def test_a_relative_path_without_a_folder_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"serve\.{name}: 'a/b' is relative"):
        read_settings({"providers": PROVIDERS, "serve": {name: "a/b"}})


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({}, ValueError),
        ({"providers": {}}, ValueError),
        ({"config": "a.yaml", "serve": {}}, ValueError),
        ({"config": "not-there.yaml"}, FileNotFoundError),
        ({"providers": PROVIDERS, "server": {}}, ValidationError),
    ],
)
def test_other_arguments_are_refused(args: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        build(args)


def test_what_travels_to_a_replica_is_the_settings_and_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LLM_API_KEY", "sk-travels-nowhere")
    settings = read_settings({"providers": PROVIDERS})
    (sent,) = deployment(application(settings)).init_args
    assert GatewaySettings.model_validate(sent) == settings
    assert "sk-travels" not in str(sent)


def test_a_replica_takes_more_than_its_admission_and_ends_after_its_longest_request() -> None:
    admission = {"in_flight": 5, "waiting": 7}
    tasks = {"book": {"max_tokens": 9_000, "timeout": 900}}
    serve = {"admission": admission, "tasks": tasks, "timeout": 60}
    made = deployment(application(read_settings({"providers": PROVIDERS, "serve": serve}), 2))
    assert made.num_replicas == 2
    # As many again may be sending their bodies.
    assert made.max_ongoing_requests == 2 * (5 + 7) + ASIDE
    assert made._deployment_config.graceful_shutdown_timeout_s == 900 + LONGER


def test_each_command_of_ray_serve_that_is_named_is_there() -> None:
    known = {name for name in ray_serve_cli.commands if name}
    root = SERVE.parent
    files = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("serve/**/*.yaml")]
    files += [*root.glob("serve/**/*.py"), *root.glob("job/**/*.py")]
    named = {
        (command, str(file.relative_to(root)))
        for file in files
        for command in re.findall(
            r"(?:`|#\s{1,4}|^)serve ([a-z][a-z-]+)", file.read_text(encoding="utf-8"), re.MULTILINE
        )
        if file.name != "CHANGELOG.md"
    }
    assert ("deploy", "serve/production.yaml") in named
    assert ("deploy", "job/commands/serve_cluster.py") in named
    assert {each for each in named if each[0] not in known} == set()
