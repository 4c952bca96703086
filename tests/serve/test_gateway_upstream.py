"""One request to providers: what comes back, and what is done where nothing does."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import orjson
import pytest
from aiohttp import web

from serve.gateway.contract import Whole
from serve.gateway.errors import (
    BadRequest,
    GatewayError,
    ProviderDown,
    ProviderFailed,
    ProviderQuota,
    ProviderRateLimited,
    ProviderTimedOut,
)
from tests.serve.upstream_world import (
    GOOD,
    KEY,
    KEY_ENV,
    Fake,
    answering,
    error_body,
    hang,
    lose,
    world,
)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)


async def hanging(request: web.Request) -> web.StreamResponse:
    await hang(request)
    raise AssertionError


async def losing(request: web.Request) -> web.StreamResponse:
    await lose(request)
    return web.Response()


async def cutting(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-length": "1000"})
    await response.prepare(request)
    await response.write(b'{"choices": [')
    await lose(request)
    return response


async def test_an_answer_comes_back_as_it_was_sent_and_is_accounted_for() -> None:
    fake = Fake([answering()])
    prices = {"currency": "CNY", "input": 2, "output": 3}
    async with world(fake, prices=prices) as made:
        answer = await made.ask({"top_k": 3, "tools": [{"type": "function"}]})
    assert isinstance(answer, Whole)
    assert orjson.loads(answer.body) == GOOD
    assert fake.seen == [
        {"model": "m", "messages": [{"role": "user", "content": "hello"}], "top_k": 3}
        | {"tools": [{"type": "function"}]}
    ]
    assert fake.headers[0]["Authorization"] == f"Bearer {KEY}"
    about = answer.about
    assert (str(about.target), about.finish_reason, about.attempts) == ("p0/m", "stop", 1)
    assert about.usage is not None
    assert (about.usage.tokens_in, about.usage.tokens_out) == (7, 2)
    assert (about.cost, about.currency) == (Decimal("0.00002"), "CNY")
    assert about.first_byte is not None
    assert about.last_byte is not None
    assert 0 <= about.queued <= about.first_byte <= about.last_byte < 5


async def test_what_passes_is_tried_again() -> None:
    again = {"retry-after-ms": "20"}
    fake = Fake(
        [
            answering(500, b"<html>", again),
            answering(429, error_body("slow down"), again),
            losing,
            answering(),
        ]
    )
    async with world(fake) as made:
        answer = await made.ask()
        assert answer.about.attempts == 4
        stats = await made.permits[0].stats()
        assert (stats.retries, stats.rate_limited) == (2, 1)


async def test_nothing_is_sent_again_once_the_answer_has_begun() -> None:
    fake = Fake([cutting, answering()])
    other = Fake([answering()])
    async with world(fake, other) as made:
        with pytest.raises(ProviderFailed):
            await made.ask()
    assert (len(fake.seen), len(other.seen)) == (1, 0)


@pytest.mark.parametrize(
    ("status", "body", "headers", "kind", "code"),
    [
        (400, error_body("no such role", "invalid_value", "messages"), {}, BadRequest, None),
        (400, error_body("too long", "context_length_exceeded"), {}, BadRequest, None),
        (422, error_body("weird"), {}, BadRequest, "x"),
        (401, error_body(f"Incorrect API key provided: {KEY}"), {}, ProviderFailed, None),
        (404, error_body("no such model", "model_not_found"), {}, ProviderFailed, None),
        (402, error_body("pay first"), {}, ProviderQuota, None),
        (429, error_body("quota", "insufficient_quota"), {}, ProviderQuota, None),
        (429, error_body("slow"), {"retry-after": "30"}, ProviderRateLimited, None),
        (200, b"<html>a proxy's page</html>", {}, ProviderFailed, None),
        (200, {"choices": []}, {}, ProviderFailed, None),
        (200, b'["choices"]', {}, ProviderFailed, None),
        (200, error_body(f"all is not well, {KEY}"), {}, ProviderFailed, None),
        (204, b"", {}, ProviderFailed, None),
        (503, error_body("maintenance"), {"retry-after": "30"}, ProviderFailed, None),
        (301, b"moved", {"location": "https://elsewhere/"}, ProviderFailed, None),
    ],
)
async def test_what_will_not_pass_is_told_at_once_in_the_gateways_words(
    status: int, body: Any, headers: dict[str, str], kind: type[GatewayError], code: str | None
) -> None:
    fake = Fake([answering(status, body, headers)])
    async with world(fake) as made:
        with pytest.raises(GatewayError) as caught:
            await made.ask()
    assert type(caught.value) is kind
    assert len(fake.seen) == 1
    if kind is BadRequest:
        given = body["error"]
        assert caught.value.message == given["message"]
        assert (caught.value.param, caught.value.code) == (given["param"], given["code"] or code)
    else:
        assert "p0" in caught.value.message
    assert KEY not in caught.value.message
    assert "127.0.0.1" not in caught.value.message


async def test_a_provider_that_wants_to_be_left_alone_is() -> None:
    fake = Fake([answering(429, error_body("slow"), {"retry-after": "100"}), answering()])
    async with world(fake) as made:
        with pytest.raises(ProviderRateLimited) as first:
            await made.ask()
        with pytest.raises(ProviderRateLimited) as second:
            await made.ask()
    assert len(fake.seen) == 1
    for caught in (first, second):
        assert caught.value.headers() == {"retry-after": "100"}


async def test_while_one_fails_the_next_is_asked_and_who_refuses_is_not_passed_over() -> None:
    failing = Fake([answering(503, error_body("down"), {"retry-after-ms": "1"})])
    good, refusing = Fake([answering()]), Fake([answering(400, error_body("never"))])
    async with world(failing, good) as made:
        answer = await made.ask()
        assert str(answer.about.target) == "p1/m"
        assert len(failing.seen) == 4
        await made.ask()
        assert len(failing.seen) == 5, "the fifth failure opens the breaker"
        await made.ask()
        assert len(failing.seen) == 5
        assert len(good.seen) == 3
    async with world(refusing, good) as made:
        with pytest.raises(BadRequest):
            await made.ask()
    assert len(good.seen) == 3


async def test_who_is_failing_is_not_asked_and_the_client_is_told_when_to_come_back() -> None:
    failing = Fake([answering(500, b"", {"retry-after-ms": "1"})])
    async with world(failing) as made:
        for _ in range(2):
            with pytest.raises(GatewayError):
                await made.ask()
        asked = len(failing.seen)
        with pytest.raises(ProviderDown) as caught:
            await made.ask()
        assert len(failing.seen) == asked
    assert 1 <= int(caught.value.headers()["retry-after"]) <= 5


async def test_where_nobody_answers_the_next_is_asked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("serve.gateway.one_provider.PAUSES", (300.0,) * 3)
    good = Fake([answering()])
    async with asyncio.timeout(60), world(Fake([]), good) as made:
        assert str((await made.ask(timeout=3_000)).about.target) == "p1/m"
    async with world(Fake([])) as made:
        with pytest.raises(ProviderDown):
            await made.ask(timeout=0.4)


async def test_where_no_retry_may_be_had_soon_the_next_is_asked() -> None:
    failing, good = Fake([answering(500, b"oops"), answering()]), Fake([answering()])
    async with world(failing, good) as made:
        for _ in range(10):
            await made.permits[0].retry_token()
        assert str((await made.ask()).about.target) == "p1/m"
    assert len(failing.seen) == 1


@pytest.mark.parametrize("odd", [{"max_tokens": 2**62}, {"max_tokens": -5}, {"n": 10**9}])
async def test_an_odd_limit_of_one_client_does_not_stop_the_others(odd: dict[str, int]) -> None:
    fake = Fake([answering(400, error_body("no")), answering()])
    async with world(fake, limits={"tpm": 60_000}) as made:
        asking = asyncio.ensure_future(made.ask(odd))
        await fake.came.wait()
        await made.ask(timeout=60)
        with pytest.raises(BadRequest):
            await asking


async def test_silence_ends_at_the_timeout_and_the_request_with_it() -> None:
    fake = Fake([hanging])
    async with world(fake) as made:
        with pytest.raises(ProviderTimedOut):
            await made.ask(timeout=0.5)
        await asyncio.wait_for(fake.left.wait(), 60)


async def test_a_client_that_leaves_takes_its_request_to_the_provider_along() -> None:
    fake = Fake([hanging])
    async with world(fake) as made:
        asking = asyncio.ensure_future(made.ask(timeout=60))
        await fake.came.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.wait_for(fake.left.wait(), 60)


async def test_who_waits_for_a_permit_in_vain_learns_whose_limit_it_was() -> None:
    fake = Fake([answering(), hanging])
    async with world(fake, limits={"rpm": 2, "burst": 1}) as made:
        await made.ask()
        with pytest.raises(ProviderRateLimited) as caught:
            await made.ask(timeout=0.5)
    assert len(fake.seen) == 1
    assert 25 <= int(caught.value.headers()["retry-after"]) <= 31
