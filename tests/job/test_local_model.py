"""A run on the cluster's own generator: which one, what it is asked, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray.serve.schema import ApplicationStatus

from job.config import resolve
from job.errors import UsageError
from job.flags import Flags
from job.instructions import ANSWER_SCHEMA
from job.local_deployed import answers
from job.local_model import PATIENCE, SECONDS, LocalModel, LocalProvider, fitted
from job.local_schema import MOST_CHARACTERS, MOST_NAMED, bounded, pack_schema
from job.validate import validate
from serve.ask.capabilities import Capabilities, build_body
from serve.ask.contract import Request

MODELS = """
models:
  e5: {embedder: bundled}
  first: {generator: models/first, context: 4096}
  rare: {pool: {second: {generator: models/second}}}
"""


def _resolved(tmp_path: Path, text: str, **flags: Any) -> LocalProvider:
    path = tmp_path / "fupan.yaml"
    path.write_text(text)
    settings = resolve(Flags(inputs=("x",), config=str(path), **flags))
    assert isinstance(settings.provider, LocalProvider)
    return settings.provider


def test_local_is_the_first_generator_of_the_file(tmp_path: Path) -> None:
    provider = _resolved(tmp_path, MODELS, provider="local")
    assert (provider.models, provider.entry, provider.context) == (("first",), "first", 4096)


def test_another_is_named_and_a_pool_answers_for_its_models(tmp_path: Path) -> None:
    provider = _resolved(tmp_path, MODELS, provider="local/second")
    assert (provider.models, provider.entry) == (("second",), "rare")
    assert _resolved(tmp_path, MODELS + "run: {provider: local/second}") == provider


def test_without_models_it_is_the_small_one_of_the_package(tmp_path: Path) -> None:
    provider = _resolved(tmp_path, "{}", provider="local")
    assert provider.generator.generator == "smollm2-135m"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"provider": "local/nobody"}, "no generator 'nobody'.*first, second"),
        ({"provider": "local/e5"}, "no generator 'e5'"),
        ({"provider": "local", "base_url": "https://x/v1"}, "--base-url cannot go with"),
        ({"provider": "local", "context": 9}, "--context cannot go with"),
        ({"provider": "local", "rpm": 9.0}, "--rpm cannot go with"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    tmp_path: Path, flags: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        _resolved(tmp_path, MODELS, **flags)


def _request(*texts: str) -> Request:
    lines = [orjson.dumps({"id": str(i), "text": t}).decode() for i, t in enumerate(texts, 1)]
    return Request("s", "\n".join(lines), 99, 9, 9.0, ANSWER_SCHEMA, "retrospective")


def _schema(request: Request) -> dict[str, Any]:
    body = fitted(build_body(request, "m", Capabilities(), {}))
    schema: dict[str, Any] = body["response_format"]["json_schema"]["schema"]
    return schema


def test_a_pack_is_answered_for_each_record_once_and_in_order() -> None:
    schema = _schema(_request("a", "b"))
    issue = dict.fromkeys(("event", "cause", "suggestion"), "x") | {"quote": None}
    problem = {"outcome": "problem", "issues": [{**issue, "basis": "stated", "severity": "low"}]}
    normal = {"outcome": "normal", "issues": []}
    good = {"results": [{"id": "1", **problem}, {"id": "2", **normal}]}
    jsonschema.validate(good, schema)
    jsonschema.validate(good, ANSWER_SCHEMA)
    verdict = validate(orjson.dumps(good).decode(), "stop", {"1": "a", "2": "b"})
    assert set(verdict.answers) == {"1", "2"}
    for wrong in (good["results"][::-1], good["results"][:1], [{"id": "1", **normal}] * 2):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"results": wrong}, schema)
    empty = {**problem, "issues": [{**problem["issues"][0], "cause": ""}]}  # type: ignore[dict-item]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"results": [{"id": "1", **empty}]}, pack_schema(["1"]))


@pytest.mark.parametrize("count", [1, MOST_NAMED, MOST_NAMED + 1, 1000])
def test_the_schema_of_a_pack_of_any_size_is_taken(count: int) -> None:
    from serve.generation.grammar import MOST_SCHEMA_BYTES  # it imports transformers

    ids = [f"{i:012}" for i in range(count)]
    schema = pack_schema(ids)
    assert len(orjson.dumps(schema)) < MOST_SCHEMA_BYTES
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    good = [{"id": each, "outcome": "normal", "issues": []} for each in ids]
    assert validator.is_valid({"results": good})
    for wrong in (good[1:], [*good[1:], {**good[0], "id": "?"}]):
        assert not validator.is_valid({"results": wrong})


def test_a_text_may_hold_other_ends_of_lines() -> None:
    schema = _schema(_request("one\u2028two\x85\x0c\r", "b"))
    assert schema["properties"]["results"]["minItems"] == 2


@given(st.lists(st.sampled_from(["string", "null", "integer"]), min_size=1, max_size=3))
def test_texts_and_lists_of_other_schemas_have_an_end(types: list[str]) -> None:
    made = bounded({"type": "array", "items": {"anyOf": [{"type": each} for each in types]}})
    texts = [each for each in made["items"]["anyOf"] if each["type"] == "string"]
    assert made["maxItems"]
    assert all(each["maxLength"] == MOST_CHARACTERS for each in texts)
    assert bounded({"type": "string", "enum": ["a"]}) == {"type": "string", "enum": ["a"]}


def test_a_model_of_a_pool_runs_where_the_pool_does(tmp_path: Path) -> None:
    pooled = (
        "models: {rare: {pool: {second: {generator: x}}, gpus: 0.5, memory: 9000, idle_to_zero: 9}}"
    )
    found = _resolved(tmp_path, pooled, provider="local/second").generator
    assert (found.generator, found.gpus, found.memory) == ("x", 0.5, 9000)
    assert found.idle_to_zero is None


@pytest.mark.parametrize(
    ("status", "replicas", "asked"),
    [
        ("RUNNING", 1, True),
        ("RUNNING", 0, True),  # none is left after a while; the next call starts one
        ("DEPLOYING", 0, True),
        ("DEPLOY_FAILED", 0, False),
        ("DEPLOY_FAILED", 1, True),
        ("UNHEALTHY", 0, False),
        ("DELETING", 1, False),
    ],
)
def test_a_run_asks_a_deployment_that_answers_or_will(
    status: str, replicas: int, asked: bool
) -> None:
    deployment = SimpleNamespace(replica_states={"RUNNING": replicas})
    found = SimpleNamespace(status=ApplicationStatus(status), deployments={"Model": deployment})
    assert answers(found) is asked
    assert not answers(None)


async def test_an_answer_of_the_model_is_a_reply(tmp_path: Path) -> None:
    waited: list[float] = []

    class Calls:
        async def answer(
            self, model: str, endpoint: str, body: Mapping[str, Any], seconds: float
        ) -> bytes:
            waited.append(seconds)
            choice = {"message": {"content": "{}"}, "finish_reason": "length"}
            usage = {"prompt_tokens": 7, "completion_tokens": 3}
            return orjson.dumps({"choices": [choice], "model": model, "usage": usage})

    model = LocalModel(_resolved(tmp_path, MODELS, provider="local"), Calls())
    reply, headers = await model.complete({"model": "first", "messages": []}, 1.0)
    assert (reply.text, reply.finish_reason, reply.model, headers) == ("{}", "length", "first", {})
    assert (reply.usage.tokens_in, reply.usage.tokens_out) == (7, 3)
    await model.complete({"model": "first", "messages": []}, 1000.0)
    assert waited == [PATIENCE, SECONDS]
