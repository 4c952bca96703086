"""`fupan check` against a provider on a real port."""

from __future__ import annotations

import socket
from email.utils import formatdate
from typing import Any

import orjson
import pytest
from aiohttp import web
from typer.testing import CliRunner, Result

from job.cli import app
from serve.simulated import SimulatedProvider
from serve.simulated_settings import Settings
from tests.serving import serving

KEY = "sk-0123456789abcdef-never-shown"
VARIABLE = "FUPAN_TEST_CHECK_KEY"


def check(url: str, *arguments: str, model: str = "simulated", **environment: str) -> Result:
    command = ["check", "--base-url", url, "--model", model, *arguments]
    return CliRunner().invoke(app, command, env=environment)


def checked(url: str, *arguments: str, **environment: str) -> dict[str, Any]:
    ended = check(url, "--json", *arguments, **environment)
    found = dict(orjson.loads(ended.stdout))
    assert found["exit_code"] == ended.exit_code
    return found


def provider(**fields: object) -> SimulatedProvider:
    return SimulatedProvider(Settings.model_validate({"time_scale": 1000.0, **fields}))


def test_a_good_provider_costs_one_request() -> None:
    with provider(rpm=60, tpm=500_000, models=("simulated", "other")) as server:
        found = checked(server.base_url)
        assert server.stats()["requests"] == 1
    assert found["exit_code"] == 0
    assert (found["json"], found["json_obeyed"], found["output_limit"]) == (
        "schema",
        True,
        "max_tokens",
    )
    assert found["limits"]["requests"]["limit"] == 60
    assert found["limits"]["tokens"]["limit"] == 500_000
    assert found["models"] == ["simulated", "other"]
    assert found["key"] == {"variable": "LLM_API_KEY", "set": None}
    assert abs(found["clock_ahead_s"]) < 3
    assert found["requests"] == 1
    assert found["tokens"] > 0


def test_what_is_refused_is_found_out_in_a_handful_of_requests() -> None:
    refused = ["json_schema", "json_object", "max_tokens", "max_completion_tokens", "temperature"]
    with provider(unsupported=refused) as server:
        found = checked(server.base_url)
        assert server.stats()["requests"] == found["requests"] == 6
    assert found["exit_code"] == 0
    assert sorted(found["refused"]) == sorted(refused)
    assert (found["json"], found["output_limit"], found["temperature"]) == ("words", "none", False)


def test_each_of_several_models_is_asked() -> None:
    with provider(models=("small", "large")) as server:
        ended = check(server.base_url, "--json", model="small,large")
        assert server.stats()["requests"] == 2
        found = orjson.loads(ended.stdout)
        assert (ended.exit_code, found["model"], found["requests"]) == (0, "large", 2)
        assert [(one["model"], one["answers"]) for one in found["other_models"]] == [
            ("small", True)
        ]
        ended = check(server.base_url, model="smal,large")
    assert ended.exit_code == 2
    said = ended.stdout.splitlines()
    assert said[2].startswith("answers     yes")
    assert said[said.index("model       smal, which is cheaper") + 1].startswith("answers     no")


def test_requests_at_once_are_sent_only_where_they_are_asked_for() -> None:
    with provider(rpm=60, request_burst=4, time_scale=2.0) as server:
        found = checked(server.base_url, "--together", "8")
        assert server.stats()["requests"] == 9
    # One of the four went to the first request; one or two came back since.
    assert found["together"]["answered"] in (3, 4, 5)
    assert found["together"]["answered"] + found["together"]["rate_limited"] == 8
    assert found["together"]["retry_after"] > 0


@pytest.mark.parametrize(
    ("fields", "arguments", "code", "said"),
    [
        ({"api_key": KEY}, {"model": "simulated"}, 2, "401"),
        ({}, {"model": "no-such-model"}, 2, "404"),
        ({"fault_shares": {"server_error": 1.0}}, {"model": "simulated"}, 1, "50"),
        ({"quota_after": 0}, {"model": "simulated"}, 1, "429"),
    ],
)
def test_what_is_wrong_decides_the_exit_code(
    fields: dict[str, object], arguments: dict[str, str], code: int, said: str
) -> None:
    with provider(**fields) as server:
        ended = check(server.base_url, **arguments)
        assert server.stats()["requests"] == 1
    assert ended.exit_code == code
    assert said in ended.stdout


def test_nobody_at_the_url_is_exit_2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    ended = check(f"http://127.0.0.1:{port}/v1")
    assert ended.exit_code == 2
    assert "did not answer" in ended.stdout


def test_a_key_that_is_missing_is_told_without_asking_anybody() -> None:
    with provider(api_key=KEY) as server:
        ended = check(server.base_url, "--api-key-env", VARIABLE)
        assert server.stats()["requests"] == 0
    assert ended.exit_code == 2
    assert f"{VARIABLE} is not set" in ended.stdout


@pytest.mark.parametrize("key", [KEY, "sk-wrong-but-just-as-secret"])
def test_the_key_is_never_shown(key: str) -> None:
    with provider(api_key=KEY) as server:
        ended = check(server.base_url, "--api-key-env", VARIABLE, **{VARIABLE: key})
    assert ended.exit_code == (0 if key == KEY else 2)
    assert f"{VARIABLE} is set" in ended.stdout
    assert key not in ended.output


def test_without_a_provider_there_is_nothing_to_check(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["check"]).exit_code == 2


def test_a_provider_that_is_odd_is_told_as_it_is() -> None:
    """It ignores the schema, lives in another hour and lists a context other than configured."""

    async def complete(_: web.Request) -> web.Response:
        message = {"content": "Sure! I am \x1b[31mready."}
        body = {"model": "odd", "choices": [{"message": message, "finish_reason": "stop"}]}
        return web.json_response(body, headers={"date": formatdate(0.0, usegmt=True)})

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "odd", "max_model_len": 4096}, {"id": 7}, "x"]})

    application = web.Application()
    application.router.add_post("/v1/chat/completions", complete)
    application.router.add_get("/v1/models", models)
    with serving(application) as url:
        ended = check(f"{url}/v1", model="odd")
    assert ended.exit_code == 0
    assert "the answer is not as asked for; try json: object" in ended.stdout
    assert "behind the clock here" in ended.stdout
    assert "a context of 4,096 tokens, configured are 8,192" in ended.stdout
    assert "its headers tell none" in ended.stdout
