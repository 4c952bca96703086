"""What is sent to a provider for a request, and that what it answers passes through."""

from __future__ import annotations

import orjson
import pytest

from serve.gateway.contract import Task, Whole
from serve.gateway.errors import BadRequest
from serve.gateway.whole import READ_BYTES
from tests.serve.upstream_world import KEY, KEY_ENV, Fake, answering, error_body, world


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)


async def test_a_tasks_limit_holds_only_where_the_client_sets_none() -> None:
    fake = Fake([answering()])
    task = Task("qa", 500, 60.0)
    async with world(fake) as made:
        await made.ask(task=task)
        await made.ask({"max_tokens": 9}, task=task)
        await made.ask({"max_completion_tokens": 8}, task=task)
        await made.ask()
    limits = [(b.get("max_tokens"), b.get("max_completion_tokens")) for b in fake.seen]
    assert limits == [(500, None), (9, None), (None, 8), (None, None)]


async def test_a_limit_by_another_name_is_found_once() -> None:
    refusal = error_body("Use 'max_completion_tokens'", "unsupported_parameter", "max_tokens")
    fake = Fake([answering(400, refusal), answering()])
    task = Task("qa", 500, 60.0)
    async with world(fake) as made:
        await made.ask(task=task)
        await made.ask(task=task)
        assert [b.get("max_completion_tokens") for b in fake.seen] == [None, 500, 500]
        fake.script.insert(0, answering(400, refusal))
        with pytest.raises(BadRequest):
            await made.ask({"max_tokens": 9}, task=task)


async def test_what_a_provider_needs_is_added_and_what_the_client_says_goes_before_it() -> None:
    fake = Fake([answering()])
    async with world(fake, extra_body={"thinking": False, "max_tokens": 100}) as made:
        await made.ask()
        await made.ask({"max_tokens": 7, "thinking": True})
    assert [(b["thinking"], b["max_tokens"]) for b in fake.seen] == [(False, 100), (True, 7)]


@pytest.mark.parametrize("vectors", [2, READ_BYTES // 8])
@pytest.mark.parametrize("first", [True, False])
async def test_vectors_pass_through_with_their_count(vectors: int, first: bool) -> None:
    usage = {"usage": {"prompt_tokens": 8, "total_tokens": 8}}
    data = {"data": [{"index": 0, "embedding": [0.25] * vectors}], "model": "m"}
    body = orjson.dumps({**usage, **data} if first else {**data, **usage})
    fake = Fake([answering(body=body)])
    async with world(fake) as made:
        answer = await made.ask({"input": ["a", "b"]}, endpoint="embeddings")
    assert isinstance(answer, Whole)
    assert answer.body == body
    assert answer.about.usage is not None
    assert answer.about.usage.tokens_in == 8
    assert fake.seen[0]["input"] == ["a", "b"]
