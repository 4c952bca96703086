"""The errors of the gateway as the official `openai` client has them: one of each class."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest
from openai import OpenAI

from tests.serve.gateway_world import World
from tests.serve.openai_world import SAID, client_of, openai_world
from tests.serve.scripted_upstream import (
    Upstream,
    answered,
    chunk,
    refused,
    silence,
    streamed,
)


@pytest.fixture(scope="module")
def world(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with openai_world(upstream, tmp_path_factory.mktemp("keys")) as world:
        yield world


@pytest.fixture
def client(world: World, upstream: Upstream) -> OpenAI:
    upstream.begin_anew()
    upstream.bodies.clear()
    return client_of(world)


def test_an_unknown_key_is_an_authentication_error(world: World) -> None:
    with pytest.raises(openai.AuthenticationError) as caught:
        client_of(world, "fp-wrong").chat.completions.create(model="simulated", messages=SAID)
    assert caught.value.code == "invalid_api_key"
    assert "fp-wrong" not in str(caught.value)


def test_a_model_that_the_key_may_not_ask_is_a_permission_error(world: World) -> None:
    with pytest.raises(openai.PermissionDeniedError) as caught:
        client_of(world, "fp-narrow").chat.completions.create(model="simulated", messages=SAID)
    assert (caught.value.code, caught.value.param) == ("model_not_allowed", "model")


def test_an_unknown_model_is_a_not_found_error(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="none", messages=SAID)
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("none")


def test_a_request_that_makes_no_sense_is_a_bad_request(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="simulated", messages=[])
    assert caught.value.param == "messages"


def test_what_the_provider_refuses_is_a_bad_request_in_its_words(
    client: OpenAI, upstream: Upstream
) -> None:
    upstream.planned.append(refused(400, "top_k must be positive", "bad_top_k"))
    with pytest.raises(openai.BadRequestError, match="top_k must be positive") as caught:
        client.chat.completions.create(model="simulated", messages=SAID)
    assert caught.value.code == "bad_top_k"


def test_a_provider_that_answers_422_is_a_bad_request_too(
    client: OpenAI, upstream: Upstream
) -> None:
    upstream.planned.append(refused(422, "no"))
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="simulated", messages=SAID)


def test_a_used_up_rate_of_the_key_is_a_rate_limit_error(world: World, client: OpenAI) -> None:
    rare = client_of(world, "fp-rare")
    rare.chat.completions.create(model="simulated", messages=SAID)
    with pytest.raises(openai.RateLimitError) as caught:
        rare.chat.completions.create(model="simulated", messages=SAID)
    assert caught.value.code == "key_rate_limited"
    assert int(caught.value.response.headers["retry-after"]) >= 1


def test_a_rate_of_the_provider_is_waited_for(client: OpenAI, upstream: Upstream) -> None:
    limited = refused(429, "slow down", **{"retry-after-ms": "50"})
    upstream.planned.extend([limited, limited])
    answer = client.chat.completions.create(model="simulated", messages=SAID)
    assert answer.choices[0].message.content == "Hello."
    assert upstream.calls == 3


def test_an_empty_account_at_the_provider_is_a_rate_limit_error(
    client: OpenAI, upstream: Upstream
) -> None:
    upstream.planned.append(refused(429, "You exceeded your quota", "insufficient_quota"))
    with pytest.raises(openai.RateLimitError) as caught:
        client.chat.completions.create(model="simulated", messages=SAID)
    assert caught.value.code == "provider_quota_exhausted"


@pytest.mark.parametrize("status", [401, 403])
def test_the_gateways_own_key_being_wrong_is_no_fault_of_the_client(
    client: OpenAI, upstream: Upstream, status: int
) -> None:
    upstream.planned.append(refused(status, "Incorrect API key"))
    with pytest.raises(openai.InternalServerError) as caught:
        client.chat.completions.create(model="simulated", messages=SAID)
    assert (caught.value.status_code, caught.value.code) == (502, "provider_failed")


def test_an_answer_that_is_none_is_an_internal_server_error(
    client: OpenAI, upstream: Upstream
) -> None:
    upstream.planned.append(answered(b"<html>502</html>"))
    with pytest.raises(openai.InternalServerError) as caught:
        client.chat.completions.create(model="simulated", messages=SAID)
    assert (caught.value.status_code, caught.value.code) == (502, "provider_failed")


def test_a_client_that_waits_no_longer_gets_its_own_timeout(
    world: World, client: OpenAI, upstream: Upstream
) -> None:
    upstream.planned.append(silence)
    with pytest.raises(openai.APITimeoutError):
        client_of(world, timeout=0.5).chat.completions.create(model="simulated", messages=SAID)
    upstream.wait_left()


def test_nobody_at_the_port_is_a_connection_error() -> None:
    with pytest.raises(openai.APIConnectionError):
        OpenAI(base_url="http://127.0.0.1:9/v1", api_key="x", max_retries=0).models.list()


def test_an_error_in_the_middle_of_a_stream_is_raised(client: OpenAI, upstream: Upstream) -> None:
    broken = {"error": {"message": "overloaded", "type": "server_error", "code": None}}
    upstream.planned.append(streamed([chunk({"content": "Hel"}), broken], done=False))
    with client.chat.completions.create(model="simulated", messages=SAID, stream=True) as stream:
        assert next(stream).choices[0].delta.content == "Hel"
        with pytest.raises(openai.APIError, match="main/simulated"):
            list(stream)
