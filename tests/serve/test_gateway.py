"""The gateway by plain HTTP: its headers, what it joins, what it keeps and what it analyses."""

from __future__ import annotations

import httpx
import orjson

from tests.serve.gateway_chat import CHAT, chat, error
from tests.serve.gateway_world import gateway_world
from tests.serve.scripted_upstream import (
    Upstream,
    answered,
    chunk,
    completion,
    refused,
    silence,
    streamed,
)

# Headers.


def test_a_sane_id_of_the_client_is_kept_and_another_is_replaced(http: httpx.Client) -> None:
    assert chat(http, {"x-request-id": "a b/ü!"[:4]}).headers["x-request-id"] == "a b/"
    for insane in ("x" * 129, "ü", "\x01"):
        answer = chat(http, {"x-request-id": insane.encode("latin-1")})  # type: ignore[dict-item]
        if answer.status_code == 200:  # the server itself refuses some
            assert answer.headers["x-request-id"].startswith("req_")


def test_it_says_who_answered_and_what_it_cost(http: httpx.Client) -> None:
    answer = chat(http)
    assert answer.headers["x-fupan-model"] == "main/simulated"
    assert answer.headers["x-fupan-cache"] == "off"
    # 5 tokens in at 2 and 3 out at 10 a million.
    assert answer.headers["x-fupan-cost"] == "0.00004 CNY"


def test_a_stream_is_not_held_back(http: httpx.Client) -> None:
    answer = chat(http, stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["x-fupan-model"] == "main/simulated"
    assert answer.text.endswith("data: [DONE]\n\n")


def test_without_keys_none_is_needed_and_any_is_taken(http: httpx.Client) -> None:
    assert chat(http).status_code == 200
    assert chat(http, {"authorization": "Bearer anything"}).status_code == 200


def test_headers_of_the_client_are_not_passed_on(http: httpx.Client, upstream: Upstream) -> None:
    chat(http, {"openai-organization": "org-1", "cookie": "a=b", "x-mine": "1"})
    sent = {name.lower() for name in upstream.headers[-1]}
    assert not sent & {"openai-organization", "cookie", "x-mine", "x-request-id"}


def test_headers_of_the_provider_are_not_passed_on(http: httpx.Client, upstream: Upstream) -> None:
    told = {"x-ratelimit-limit-requests": "99999", "openai-processing-ms": "7", "set-cookie": "a=b"}
    upstream.planned.append(answered(completion(), 200, **told))
    assert not set(chat(http).headers) & set(told)


def test_a_model_has_no_date(http: httpx.Client) -> None:
    model = http.get("/v1/models/simulated").json()
    assert model == {"id": "simulated", "object": "model", "created": 0, "owned_by": "main"}


def test_a_stream_begins_while_the_provider_still_writes(
    http: httpx.Client, upstream: Upstream
) -> None:
    upstream.planned.append(streamed([chunk({"content": "Hel"})], then=silence))
    with http.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": True}) as answer:
        assert answer.headers["x-fupan-model"] == "main/simulated"
        assert "x-fupan-cost" not in answer.headers
        assert b"Hel" in next(answer.iter_raw())
    upstream.wait_left()


# Joined events.


def said_by(answer: httpx.Response) -> list[str]:
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    deltas = [orjson.loads(line)["choices"][0]["delta"] for line in lines if line != "[DONE]"]
    return [delta["content"] for delta in deltas if delta.get("content")]


def test_events_are_joined_by_the_configuration_or_the_header(upstream: Upstream) -> None:
    said = [chunk({"content": text}) for text in (" one", " two", " three")]
    with (
        gateway_world({"main": upstream.url}, {"join_tokens": 2}) as world,
        httpx.Client(base_url=world.url) as http,
    ):
        upstream.planned.extend(streamed([*said, chunk({}, "stop")]) for _ in range(2))
        assert said_by(chat(http, stream=True)) == [" one two", " three"]
        assert len(said_by(chat(http, {"x-fupan-join": "1"}, stream=True))) == 3
        refusal = chat(http, {"x-fupan-join": "17"}, stream=True)
        assert error(refusal)[::2] == (400, "x-fupan-join")


# Caches, at the wire.


def test_an_equal_request_is_answered_from_the_cache_and_costs_nothing(
    http: httpx.Client, upstream: Upstream
) -> None:
    wish = {"x-fupan-cache": "exact"}
    first, second = (chat(http, wish, temperature=0, seed=1) for _ in range(2))
    assert (first.headers["x-fupan-cache"], second.headers["x-fupan-cache"]) == ("miss", "exact")
    assert second.headers["x-fupan-cost"] == "0"
    assert second.headers["x-fupan-model"] == "main/simulated"
    assert first.content == second.content
    assert upstream.calls == 1


def test_a_stream_is_kept_and_cut_again(http: httpx.Client, upstream: Upstream) -> None:
    wish = {"x-fupan-cache": "exact"}
    first = chat(http, wish, temperature=0, seed=2, stream=True)
    again = chat(http, wish, temperature=0, seed=2, stream=True)
    whole = chat(http, wish, temperature=0, seed=2)
    assert "".join(said_by(first)) == "".join(said_by(again)) == "Hello."
    assert whole.json()["choices"][0]["message"]["content"] == "Hello."
    assert whole.json()["usage"]["total_tokens"] == 8
    assert (again.headers["x-fupan-cache"], whole.headers["x-fupan-cache"]) == ("exact", "exact")
    assert upstream.calls == 1


def test_without_being_asked_nothing_is_kept(http: httpx.Client, upstream: Upstream) -> None:
    for _ in range(2):
        assert chat(http, temperature=0).headers["x-fupan-cache"] == "off"
    assert upstream.calls == 2


def test_an_idempotency_key_asks_once(http: httpx.Client, upstream: Upstream) -> None:
    key = {"idempotency-key": "order-1"}
    first, second = chat(http, key), chat(http, key)
    assert second.headers["x-fupan-cache"] == "repeated"
    assert first.content == second.content
    assert upstream.calls == 1
    assert error(chat(http, key, seed=9))[:2] == (400, "idempotency_key_reused")


def test_a_failure_is_not_kept(http: httpx.Client, upstream: Upstream) -> None:
    upstream.planned.append(refused(400, "no"))
    key = {"idempotency-key": "order-2", "x-fupan-cache": "exact"}
    assert chat(http, key, temperature=0, seed=3).status_code == 400
    assert chat(http, key, temperature=0, seed=3).status_code == 200


# Documents.


def test_a_document_is_analysed_in_parts_that_fail_on_their_own(
    http: httpx.Client, upstream: Upstream
) -> None:
    upstream.planned.append(answered(completion('{"summary": "The disk was full."}')))
    document = {"text": "At 10:00 the disk was full.", "parts": ["summary"]}
    answer = http.post("/v1/analyze", json=document)
    assert answer.json()["summary"] == "The disk was full."
    assert answer.headers["x-fupan-model"] == "main/simulated"
    assert error(http.post("/v1/analyze", json={"text": ""}))[::2] == (400, "text")
