"""The smallest value that fits a schema, and the rules of strict mode."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve.simulated_schema import SchemaError, fit, strict_problem
from tests.serve.simulated_requests import RESULTS, strict_object

_names = st.sampled_from(["id", "a", "b", "title"])


def _string() -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(st.integers(0, 3), st.integers(3, 6)).map(
        lambda ends: {"type": "string", "minLength": ends[0], "maxLength": ends[1]}
    )


def _number() -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(
        st.sampled_from(["integer", "number"]),
        st.sampled_from(["minimum", "exclusiveMinimum"]),
        st.integers(-20, 5),
        st.sampled_from(["maximum", "exclusiveMaximum"]),
        st.integers(8, 20),
        st.sampled_from([{}, {"multipleOf": 2}, {"multipleOf": 3}]),
    ).map(lambda p: {"type": p[0], p[1]: p[2], p[3]: p[4], **p[5]})


def _objects(children: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda properties, required, extra: {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": extra,
        },
        st.dictionaries(_names, children, max_size=3),
        st.lists(st.sampled_from(["id", "a", "b"]), unique=True),
        st.just({"type": "string"}),
    )


_leaves = st.one_of(
    st.sampled_from(
        [
            {"type": "null"},
            {"type": "boolean"},
            {"const": 1},
            {"enum": ["x", 1, 0]},
            {"type": "string"},
        ]
    ),
    _string(),
    _number(),
    st.just({"type": ["string", "null"]}),
    st.just({}),
)
_schemas = st.recursive(
    _leaves,
    lambda children: st.one_of(
        _objects(children),
        st.tuples(children, st.integers(0, 2), st.integers(2, 3)).map(
            lambda p: {"type": "array", "items": p[0], "minItems": p[1], "maxItems": p[2]}
        ),
        st.lists(children, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches}),
    ),
    max_leaves=8,
)
_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-30, 30), st.text(max_size=8)),
    lambda children: st.one_of(
        st.lists(children, max_size=4), st.dictionaries(_names, children, max_size=3)
    ),
    max_leaves=8,
)


@given(_schemas)
def test_the_smallest_value_fits(schema: dict[str, Any]) -> None:
    jsonschema.validate(fit(schema), schema)


@given(_schemas, _values)
def test_whatever_is_preferred_the_value_fits(schema: dict[str, Any], preferred: Any) -> None:
    jsonschema.validate(fit(schema, preferred), schema)


@given(_schemas, _values)
def test_a_fitted_value_is_kept_as_it_is(schema: dict[str, Any], preferred: Any) -> None:
    value = fit(schema, preferred)
    assert fit(schema, value) == value


def test_references_are_followed_and_recursion_ends_where_it_can() -> None:
    schema = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": strict_object({"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}})
        },
    }
    assert fit(schema) == {"next": None}
    assert fit(schema, {"next": {"next": None}}) == {"next": {"next": None}}


def test_all_of_is_taken_together() -> None:
    part = {"properties": {"a": {"type": "integer"}}, "required": ["a"]}
    schema = {"type": "object", "allOf": [part, {"required": ["b"]}]}
    assert fit(schema) == {"a": 0, "b": None}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/none"},
        {"$ref": "https://elsewhere.example/schema"},
        {"$ref": "#"},
        {"anyOf": [{"$ref": "#"}]},
        {"type": "text"},
        strict_object({"self": {"$ref": "#"}}),
    ],
)
def test_a_schema_that_leads_nowhere_is_an_error(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        fit(schema)


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({"type": "array"}, "root"),
        ({"type": "object", "anyOf": []}, "root"),
        ({"type": "object", "properties": {}}, "additionalProperties"),
        (strict_object({"a": {"type": "object"}}), "/properties/a"),
        (strict_object({"a": {}}) | {"required": []}, "required"),
        (strict_object({"a": {"oneOf": [{"type": "null"}]}}), "oneOf"),
        (strict_object({"a": {"type": "array", "items": {"type": "object"}}}), "/items"),
    ],
)
def test_strict_mode_has_rules(schema: dict[str, Any], word: str) -> None:
    assert word in (strict_problem(schema) or "")


def test_a_schema_that_keeps_the_rules_may_be_strict() -> None:
    assert strict_problem(RESULTS) is None
