"""Analyses that are asked for again: what is kept of them, and what is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.serve.gateway_world import World, gateway_world
from tests.serve.scripted_upstream import Upstream, answered, completion

PROSE = answered(completion("I would rather not."))
GOOD = answered(completion('{"summary": "A password was lost."}'))


@pytest.fixture(scope="module")
def world(upstream: Upstream) -> Iterator[World]:
    with gateway_world({"main": upstream.url}) as world:
        yield world


@pytest.fixture
def http(world: World, upstream: Upstream) -> Iterator[httpx.Client]:
    upstream.begin_anew()
    upstream.bodies.clear()
    with httpx.Client(base_url=world.base_url) as client:
        yield client


def analyze(http: httpx.Client, text: str, header: str) -> tuple[int, Any]:
    name, _, value = header.partition(": ")
    answer = http.post("/analyze", json={"text": text, "parts": ["summary"]}, headers={name: value})
    return answer.status_code, answer.json().get("summary")


@pytest.mark.parametrize("header", ["x-fupan-cache: exact", "idempotency-key: once"])
def test_an_answer_that_is_of_no_use_is_not_given_again(
    http: httpx.Client, upstream: Upstream, header: str
) -> None:
    upstream.planned.extend([PROSE, GOOD])
    text = "I lost my password."
    came = [analyze(http, text, header) for _ in range(3)]
    assert came == [(502, None), (200, "A password was lost."), (200, "A password was lost.")]
    assert upstream.calls == 2


def test_what_a_chat_kept_is_asked_anew_where_it_is_of_no_use(
    http: httpx.Client, upstream: Upstream
) -> None:
    header = "x-fupan-cache: exact"
    upstream.planned.extend([PROSE, PROSE, GOOD])
    assert analyze(http, "Where is my password?", header)[0] == 502
    body = upstream.bodies[-1]
    for _ in range(2):
        answer = http.post("/chat/completions", json=body, headers={"x-fupan-cache": "exact"})
        assert answer.status_code == 200
    assert upstream.calls == 2
    assert analyze(http, "Where is my password?", header)[0] == 200
    assert upstream.calls == 3
