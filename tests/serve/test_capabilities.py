from __future__ import annotations

import orjson
import pytest

from serve.ask.capabilities import Capabilities, build_body, features_of
from serve.ask.contract import Request

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
REQUEST = Request("be brief", "hello", 50, 10, 5.0, SCHEMA, "reply")


def test_a_provider_that_refuses_everything_is_still_asked_in_words() -> None:
    capabilities = Capabilities()
    for _ in range(5):
        body = build_body(REQUEST, "m", capabilities, {})
        features = features_of(body)
        if features:
            capabilities = capabilities.without(features[0])
    assert features_of(build_body(REQUEST, "m", capabilities, {})) == []
    assert orjson.dumps(SCHEMA).decode() in body["messages"][0]["content"]


def test_the_schema_is_strict_where_it_can_be() -> None:
    body = build_body(REQUEST, "m", Capabilities(), {})
    assert body["response_format"]["json_schema"]["strict"] is True
    assert body["messages"][0]["content"] == "be brief"
    assert (body["max_tokens"], body["temperature"]) == (50, 0.0)


def test_the_other_name_of_max_tokens_is_tried_before_none() -> None:
    capabilities = Capabilities().without("max_tokens")
    assert "max_completion_tokens" in build_body(REQUEST, "m", capabilities, {})
    capabilities = capabilities.without("max_completion_tokens")
    assert capabilities.output_limit == "none"


def test_extra_body_wins() -> None:
    body = build_body(REQUEST, "m", Capabilities(), {"temperature": 1, "thinking": False})
    assert (body["temperature"], body["thinking"]) == (1, False)


def test_an_unknown_feature_is_a_bug() -> None:
    with pytest.raises(ValueError, match="magic"):
        Capabilities().without("magic")
