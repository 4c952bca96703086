"""JSON schemas: the smallest value that fits one, and what strict mode demands of one.

Invariant: `fit` keeps of a preferred value whatever the schema allows and fills the rest with the
smallest there is, so what it returns always fits. Not understood, and so not guaranteed:
`pattern`, `not`, `if`, `uniqueItems`, `patternProperties`, `propertyNames`, and what stands beside
`anyOf` or `oneOf`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any] | bool

MISSING: Any = object()
"""No preferred value."""

_RANK = ("null", "boolean", "integer", "number", "string", "array", "object")
"""Types from the smallest value to the largest."""
_NOT_IN_STRICT = ("allOf", "oneOf", "not", "if", "dependentRequired", "dependentSchemas")
_FORMATS = {
    "date": "1970-01-01",
    "date-time": "1970-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "a@b.example",
    "uri": "about:blank",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "ipv4": "0.0.0.0",  # noqa: S104 - the smallest value of the format, nothing listens here
    "ipv6": "::",
}


class SchemaError(ValueError):
    """The schema cannot be followed: an unknown type or reference, or one that never ends."""


def _resolve(schema: Schema, root: Schema) -> Mapping[str, Any]:
    """The schema behind references, its `allOf` merged in."""
    if isinstance(schema, bool):
        return {}
    seen: set[str] = set()
    while "$ref" in schema:
        path = schema["$ref"]
        if path in seen or not isinstance(path, str) or not path.startswith("#"):
            raise SchemaError(f"cannot follow the reference {path!r}")
        seen.add(path)
        target: Any = root
        for part in path.removeprefix("#").strip("/").split("/") if path != "#" else ():
            try:
                target = target[part.replace("~1", "/").replace("~0", "~")]
            except (KeyError, TypeError) as error:
                raise SchemaError(f"cannot follow the reference {path!r}") from error
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**target, **rest} if isinstance(target, Mapping) else rest
    if "allOf" not in schema:
        return schema
    merged: dict[str, Any] = {key: value for key, value in schema.items() if key != "allOf"}
    for branch in schema["allOf"]:
        extra = _resolve(branch, root)
        properties = {**merged.get("properties", {}), **extra.get("properties", {})}
        required = [*merged.get("required", ()), *extra.get("required", ())]
        merged = {**merged, **extra, "properties": properties, "required": required}
    return merged


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _among(value: object, allowed: Sequence[object]) -> bool:
    """Whether `value` is one of `allowed`, where true is not 1."""
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in allowed)


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The types a schema allows, the smallest first."""
    given = schema.get("type")
    if given is None:
        if "properties" in schema or "required" in schema:
            return ("object",)
        return ("array",) if "items" in schema else _RANK
    names = [given] if isinstance(given, str) else given
    unknown = [name for name in names if name not in _RANK]
    if unknown or not names:
        raise SchemaError(f"unknown type {given!r}")
    return tuple(sorted(names, key=_RANK.index))


def _accepts(schema: Schema, value: object, root: Schema) -> bool:
    """Whether `value` is of a type, or one of the values, that `schema` is for."""
    full = _resolve(schema, root)
    if "const" in full or "enum" in full:
        return _among(value, [full["const"]] if "const" in full else full["enum"])
    branches = full.get("anyOf") or full.get("oneOf")
    if branches:
        return any(_accepts(branch, value, root) for branch in branches)
    kind, types = _type_of(value), _types(full)
    return kind in types or (kind == "integer" and "number" in types)


def _weight(schema: Schema, root: Schema) -> int:
    """How large the smallest value of a branch is, roughly: the rank of its smallest type."""
    full = _resolve(schema, root)
    if "const" in full or "enum" in full:
        return 0
    branches = full.get("anyOf") or full.get("oneOf")
    if branches:
        return min(_weight(branch, root) for branch in branches)
    return _RANK.index(_types(full)[0])


def fit(schema: Schema, preferred: Any = MISSING, root: Schema | None = None) -> Any:
    """A value that fits `schema`: `preferred` where it fits, else the smallest.

    `root` is where references start, by default `schema` itself. Raises SchemaError.
    """
    try:
        return _fit(schema, preferred, schema if root is None else root)
    except RecursionError as error:
        raise SchemaError("the schema has no finite value") from error


def _fit(schema: Schema, preferred: Any, root: Schema) -> Any:
    full = _resolve(schema, root)
    if "const" in full:
        return full["const"]
    if "enum" in full:
        return preferred if _among(preferred, full["enum"]) else full["enum"][0]
    branches = full.get("anyOf") or full.get("oneOf")
    if branches:
        accepting = [
            b for b in branches if preferred is not MISSING and _accepts(b, preferred, root)
        ]
        if accepting:
            values = [_fit(branch, preferred, root) for branch in accepting]
            return next((value for value in values if value == preferred), values[0])
        return _fit(min(branches, key=lambda branch: _weight(branch, root)), MISSING, root)
    types = _types(full)
    fits = preferred is not MISSING and _accepts(full, preferred, root)
    kind = _type_of(preferred) if fits else types[0]
    if kind == "object":
        return _fit_object(full, preferred if fits else {}, root)
    if kind == "array":
        return _fit_array(full, preferred if fits else [], root)
    if kind == "string":
        return _fit_string(full, preferred if fits else None)
    if kind in ("integer", "number"):
        return _fit_number(full, preferred if fits else None, whole="number" not in types)
    if kind == "boolean":
        return preferred if fits else False
    return None


def _fit_object(
    schema: Mapping[str, Any], preferred: Mapping[str, Any], root: Schema
) -> dict[str, Any]:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    required = list(schema.get("required", ()))
    extra: Schema = schema.get("additionalProperties", True)
    value = {
        name: _fit(part, preferred.get(name, MISSING), root)
        for name, part in properties.items()
        if name in required or name in preferred
    }
    for name in [*required, *preferred] if extra is not False else ():
        if name not in properties and name not in value:
            value[name] = _fit(extra, preferred.get(name, MISSING), root)
    return value


def _fit_array(schema: Mapping[str, Any], preferred: list[Any], root: Schema) -> list[Any]:
    items: Schema = schema.get("items", True)
    values = [_fit(items, value, root) for value in preferred[: schema.get("maxItems")]]
    values += [_fit(items, MISSING, root) for _ in range(schema.get("minItems", 0) - len(values))]
    return values


def _fit_string(schema: Mapping[str, Any], preferred: str | None) -> str:
    if "format" in schema:
        return preferred if preferred else _FORMATS.get(schema["format"], "")
    text = preferred or ""
    return text.ljust(schema.get("minLength", 0), "-")[: schema.get("maxLength")]


def _fit_number(schema: Mapping[str, Any], preferred: float | None, whole: bool) -> int | float:
    low = schema.get("minimum", -math.inf)
    high = schema.get("maximum", math.inf)
    step = schema.get("multipleOf", 1 if whole else 0)
    low_out = schema.get("exclusiveMinimum", -math.inf)
    high_out = schema.get("exclusiveMaximum", math.inf)

    def inside(value: float) -> bool:
        return low <= value <= high and low_out < value < high_out and not (step and value % step)

    if preferred is not None and inside(preferred):
        return preferred
    if inside(0):
        return 0
    gap = step or min(1.0, (min(high, high_out) - max(low, low_out)) / 2)
    if max(low, low_out) >= 0:
        start = max(low, low_out)
        candidate = math.ceil(start / step) * step if step else start
        found = candidate if inside(candidate) else candidate + gap
    else:
        start = min(high, high_out)
        candidate = math.floor(start / step) * step if step else start
        found = candidate if inside(candidate) else candidate - gap
    return int(found) if whole else found


def strict_problem(schema: Mapping[str, Any]) -> str | None:
    """What keeps `schema` from being used in strict mode, None where nothing does.

    The documented rules: the root is an object and no alternative; every object forbids
    additional properties and requires all it has; no composition but `anyOf`.
    """
    if schema.get("type") != "object" or "anyOf" in schema:
        return "the root must be of type 'object' and must not be 'anyOf'"
    return _strict_problem(schema, "")


def _strict_problem(schema: Schema, where: str) -> str | None:
    if isinstance(schema, bool):
        return f"in context '{where}', a boolean schema is not permitted"
    for word in _NOT_IN_STRICT:
        if word in schema:
            return f"in context '{where}', '{word}' is not permitted"
    properties: Mapping[str, Schema] = schema.get("properties", {})
    if "properties" in schema or schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            return f"in context '{where}', 'additionalProperties' must be supplied and be false"
        missing = sorted(set(properties) - set(schema.get("required", ())))
        if missing:
            return f"in context '{where}', 'required' must name every property, not so {missing}"
    parts: list[tuple[str, Schema]] = [
        (f"{where}/properties/{n}", p) for n, p in properties.items()
    ]
    parts += [(f"{where}/$defs/{name}", part) for name, part in schema.get("$defs", {}).items()]
    parts += [(f"{where}/anyOf/{i}", part) for i, part in enumerate(schema.get("anyOf", ()))]
    parts += [(f"{where}/items", schema["items"])] if "items" in schema else []
    return next((p for p in (_strict_problem(part, at) for at, part in parts) if p), None)
