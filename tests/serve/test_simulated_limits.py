"""Limits and latency of the simulated provider."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve.simulated_limits import Bucket, interpolated
from serve.simulated_settings import LATENCY
from tests.serve.simulated_requests import analysis, calling, chat, error


@pytest.mark.parametrize(
    ("tokens", "seconds"),
    [(0, 0.8), (100, 0.8), (550, 1.0), (1000, 1.2), (4000, 3.1), (8000, 6.2), (10000, 7.9)],
)
def test_latency_is_linear_between_the_measured_points(tokens: int, seconds: float) -> None:
    assert interpolated(LATENCY, tokens) == pytest.approx(seconds)


def test_one_point_is_a_constant() -> None:
    assert interpolated([(1, 0.5)], 10_000) == 0.5


@given(
    st.integers(1, 600),
    st.integers(1, 100),
    st.lists(st.floats(0, 30, allow_nan=False), min_size=1, max_size=200),
)
def test_a_bucket_never_gives_more_than_its_burst_and_its_rate(
    per_minute: int, burst: int, gaps: list[float]
) -> None:
    bucket, now, taken = Bucket(per_minute, burst), 0.0, 0
    for gap in gaps:
        now += gap
        wait = bucket.wait_for(1, now)
        if wait == 0:
            bucket.take(1, now)
            taken += 1
        else:
            assert bucket.wait_for(1, now + wait) == pytest.approx(0, abs=1e-6)
    assert taken <= burst + now * per_minute / 60 + 1e-6


def test_beyond_the_burst_comes_a_429_that_says_when() -> None:
    with calling(time_scale=1, latency=[(1, 0)], rpm=6, request_burst=2) as caller:
        replies = [caller.post(chat("x")) for _ in range(3)]
        stats = caller.provider.stats()
    assert [r.status_code for r in replies] == [200, 200, 429]
    assert error(replies[2])["code"] == "rate_limit_exceeded"
    assert error(replies[2])["type"] == "requests"
    assert replies[2].headers["retry-after"] == "10"
    assert 9000 < int(replies[2].headers["retry-after-ms"]) <= 10000
    assert replies[0].headers["x-ratelimit-limit-requests"] == "6"
    assert replies[0].headers["x-ratelimit-remaining-requests"] == "1"
    assert replies[2].headers["x-ratelimit-reset-requests"].startswith(("19.", "20"))
    assert stats["by_status"] == {"200": 2, "429": 1}


def test_after_the_time_told_there_is_room_again() -> None:
    with calling(time_scale=100, rpm=2, request_burst=1) as caller:
        caller.post(chat("x"))
        refused = caller.post(chat("x"))
        # half a minute of simulated time, told in real seconds
        assert 0 < float(refused.headers["retry-after"]) <= 0.3
        statuses = []
        while 200 not in statuses:
            statuses.append(caller.post(chat("x")).status_code)
            assert len(statuses) < 5000


def test_a_429_may_say_nothing_of_when() -> None:
    with calling(rpm=1, retry_after=False) as caller:
        caller.post(chat("x"))
        refused = caller.post(chat("x"))
    assert refused.status_code == 429
    assert "retry-after" not in refused.headers
    assert "retry-after-ms" not in refused.headers


def test_a_fault_429_says_what_it_is_told_to() -> None:
    settings: dict[str, Any] = {"fault_schedule": {1: "rate_limit"}, "fault_retry_after": 900}
    with calling(time_scale=1, latency=[(1, 0)], **settings) as caller:
        refused = caller.post(chat("x"))
    assert refused.headers["retry-after"] == "900"


def test_tokens_are_limited_by_prompt_and_allowed_output() -> None:
    body = chat("word " * 100, max_tokens=500)
    with calling(time_scale=1, latency=[(1, 0)], tpm=1000, token_burst=1000) as caller:
        first = caller.post(body)
        used = first.json()["usage"]["total_tokens"]
        second = caller.post(body)
        after_two = int(second.headers["x-ratelimit-remaining-tokens"])
        third = caller.post(chat("word " * 100, max_tokens=700))
    assert (first.status_code, second.status_code) == (200, 200), "unused output is given back"
    assert after_two == pytest.approx(1000 - used - (used + 500), abs=60)
    assert third.status_code == 429
    assert error(third)["type"] == "tokens"


def test_a_request_larger_than_the_burst_is_never_admitted_and_gets_no_time() -> None:
    with calling(tpm=100, context=8192) as caller:
        refused = caller.post(chat("x", max_tokens=500))
    assert refused.status_code == 429
    assert "retry-after" not in refused.headers
    assert "too large" in error(refused)["message"]


def test_tokens_of_a_failed_request_are_given_back() -> None:
    body = chat("word " * 100, max_tokens=800)
    with calling(
        time_scale=1, latency=[(1, 0)], tpm=1000, fault_schedule={1: "server_error"}
    ) as caller:
        assert caller.post(body).status_code >= 500
        assert caller.post(body).status_code == 200


def test_the_quota_ends_after_so_many_requests() -> None:
    with calling(quota_after=2) as caller:
        replies = [caller.post(analysis(["x"])) for _ in range(4)]
    assert [r.status_code for r in replies] == [200, 200, 429, 429]
    assert error(replies[2])["code"] == "insufficient_quota"
    assert error(replies[2])["type"] == "insufficient_quota"
    assert "retry-after" not in replies[2].headers


def test_the_quota_may_be_empty_for_a_while() -> None:
    with calling(quota_windows=[(0, 30)]) as caller:
        codes = []
        while 200 not in codes:
            codes.append(caller.post(chat("x")).status_code)
            assert len(codes) < 5000
    assert codes[0] == 429
