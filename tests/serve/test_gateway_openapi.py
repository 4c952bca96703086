"""schemathesis reads the OpenAPI document of a running gateway and asks it whatever that allows,
and what it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from aiohttp import web
from hypothesis import HealthCheck, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import checks

from serve.gateway.openapi import document
from tests.serve.gateway_world import gateway_world
from tests.serve.scripted_upstream import answered, completion, plain, upstream_world
from tests.serve.search_world import leave_run, record
from tests.serve.test_gateway_search import indexed, with_search

pytestmark = pytest.mark.slow
EXAMPLES = {"post": 25, "get": 5}
MODELS = ["simulated", "main/simulated", "none"]
CHECKS: list[Any] = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.unsupported_method,
]
"""Not whether data beyond the document are refused: what the gateway does not decide by, it passes
on."""


@pytest.fixture(scope="module")
def openapi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("retro")
    leave_run(folder / "all" / "day", [record("r-1", "a late refund")])
    search = indexed(folder, tmp_path_factory.mktemp("index"), all=None)
    with (
        upstream_world() as upstream,
        gateway_world({"main": upstream.url}, build=with_search(search)) as world,
    ):
        told = httpx.get(f"{world.url}/openapi.json").json()
        # Of random names none would be a model's, and nothing would get as far as the provider.
        for name in ("ChatRequest", "EmbeddingRequest", "Document"):
            told["components"]["schemas"][name]["properties"]["model"] = {"enum": MODELS}
        (run,) = httpx.get(f"{world.url}/v1/reports").json()["data"]
        for path in ("/v1/reports/{run}", "/v1/reports/{run}/{file}"):
            told["paths"][path]["get"]["parameters"][0]["schema"] = {"enum": [run["id"], "none"]}
        parts = told["components"]["schemas"]["Document"]["properties"]["parts"]
        parts["items"]["enum"] = ["summary"]
        upstream.otherwise = answer
        schema = schemathesis.openapi.from_dict(told)
        schema.config.update(base_url=world.url)
        yield schema
        assert upstream.calls > 20


async def answer(request: web.Request) -> web.StreamResponse:
    """A summary where one is asked for, else something that fits."""
    if b"json_schema" in await request.read():
        return await answered(completion('{"summary": "Nothing happened."}'))(request)
    return await plain(request)


OPERATIONS = [
    (method, path)
    for path, methods in document("0", metrics=True, search=True)["paths"].items()
    for method in methods
]


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_whatever_is_asked_the_answer_is_one_that_the_document_describes(
    openapi: Any, method: str, path: str, mode: schemathesis.GenerationMode
) -> None:
    asked = openapi[path][method].as_strategy(generation_mode=mode)

    @seed(20260314)
    @settings(max_examples=EXAMPLES[method], database=None, suppress_health_check=list(HealthCheck))
    @given(asked)
    def ask(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(checks=CHECKS, timeout=60)

    try:
        ask()
    except Unsatisfiable:
        assert path not in ("/v1/chat/completions", "/v1/embeddings", "/v1/analyze")
