"""The OpenAPI document of the gateway.

It says what the gateway itself decides; what a provider understands besides is passed through, so
every body may have further fields. Invariant: whatever this document allows is answered with
something that this document describes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from serve.gateway.openapi_schemas import NAME, SCHEMAS, Schema
from serve.gateway.openapi_search import (
    REPORT_CODES,
    REPORTS_CODES,
    SEARCH_CODES,
    SEARCH_SCHEMAS,
    Codes,
)
from serve.gateway.request import MOST_ID, MOST_JOINED
from serve.search.reports import FILES, PAGE

_REQUEST_ID: Final[Schema] = {
    "x-request-id": {
        "description": "The client's own, where it sent a sane one.",
        "schema": {"type": "string", "maxLength": MOST_ID},
    }
}
_MARKS: Final[Schema] = {
    **_REQUEST_ID,
    "x-fupan-cache": {
        "schema": {"enum": ["off", "miss", "exact", "near", "semantic", "joined", "repeated"]}
    },
    "x-fupan-model": {"description": "Who answered.", "schema": {"type": "string"}},
    "x-fupan-cost": {"description": "Amount and currency.", "schema": {"type": "string"}},
}
_RETRY: Final[Schema] = {
    **_REQUEST_ID,
    "retry-after": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}},
}
_ERRORS: Final = {
    "400": "Something is wrong with the request; `param` says with what.",
    "401": "No API key, or an unknown one.",
    "403": "The key may not ask this model, or may not search.",
    "404": "There is no such model, or no such report.",
    "408": "The time is over that `x-request-timeout-seconds` or the ingress gives a request.",
    "409": "Answered before under this `Idempotency-Key`, and the answer was not kept.",
    "413": "The body is too large.",
    "429": "A rate or the money is used up; `code` says whose.",
    "500": "The gateway failed.",
    "502": "The provider failed.",
    "503": "The gateway is full or about to end, or the provider is failing.",
    "504": "The provider took too long.",
}
_KEY_ERRORS: Final = ("401", "500")


def document(version: str, metrics: bool, search: bool = False) -> Schema:
    """The document; `metrics`, `search`: whether `/metrics` and the search are there."""
    paths = {
        "/v1/chat/completions": {"post": _chat()},
        "/v1/embeddings": {"post": _embeddings()},
        "/v1/analyze": {"post": _analyze()},
        "/v1/models": {"get": _told("Models", "The models there are.", _KEY_ERRORS)},
        "/v1/models/{model}": {
            "get": {
                **_told("Model", "One of them.", ("404", *_KEY_ERRORS)),
                "parameters": [
                    {"name": "model", "in": "path", "required": True, "schema": NAME},
                ],
            }
        },
        "/healthz": {"get": _told("Health", "Whether it runs.", ("500",), open_=True)},
        "/readyz": {
            "get": _told("Health", "Whether to send requests.", ("500", "503"), open_=True)
        },
    }
    if search:
        paths |= _searched()
    if metrics:
        paths["/metrics"] = {"get": _metrics()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "fupan", "version": version},
        "paths": paths,
        "components": {
            "schemas": SCHEMAS | SEARCH_SCHEMAS if search else SCHEMAS,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}, {}],
    }


def _chat() -> Schema:
    return {
        "operationId": "chat",
        "summary": "A chat completion, whole or as server-sent events.",
        "parameters": [*_asking(), _header("x-fupan-join", _joined())],
        "requestBody": _body("ChatRequest"),
        "responses": {
            "200": {
                "description": "The answer as the provider gave it.",
                "headers": _MARKS,
                "content": {
                    "application/json": {"schema": _ref("ChatCompletion")},
                    "text/event-stream": {"schema": {"type": "string"}},
                },
            },
            **_errors(_ERRORS),
        },
    }


def _embeddings() -> Schema:
    return {
        "operationId": "embeddings",
        "summary": "Vectors of texts.",
        "parameters": _asking(),
        "requestBody": _body("EmbeddingRequest"),
        "responses": {"200": _json("Embeddings", "The vectors.", _MARKS), **_errors(_ERRORS)},
    }


def _analyze() -> Schema:
    return {
        "operationId": "analyze",
        "summary": "What a document says: keywords, summary, difficulty and a retrospective.",
        "parameters": _asking(),
        "requestBody": _body("Document"),
        "responses": {"200": _json("Analysis", "What was found.", _MARKS), **_errors(_ERRORS)},
    }


def _told(schema: str, summary: str, errors: Iterable[str] | Codes, open_: bool = False) -> Schema:
    codes = errors if isinstance(errors, dict) else None
    told: Schema = {
        "operationId": summary.rstrip(".").replace(" ", "_").lower(),
        "summary": summary,
        "responses": {"200": _json(schema, summary, _REQUEST_ID), **_errors(errors, codes)},
    }
    return {**told, "security": []} if open_ else told


def _metrics() -> Schema:
    return {
        "operationId": "metrics",
        "summary": "Figures in Prometheus's text format.",
        "security": [],
        "responses": {
            "200": {
                "description": "The figures.",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            },
            **_errors(("500",)),
        },
    }


def _searched() -> Schema:
    found = {
        "operationId": "search",
        "summary": "What runs have left, by words and by meaning.",
        "parameters": [_header("x-request-id", {"type": "string", "maxLength": MOST_ID})],
        "requestBody": _body("SearchQuery"),
        "responses": {
            "200": _json("SearchAnswer", "What was found, best first.", _REQUEST_ID),
            **_errors(SEARCH_CODES, SEARCH_CODES),
        },
    }
    run = {"name": "run", "in": "path", "required": True, "schema": NAME}
    file = {"name": "file", "in": "path", "required": True, "schema": {"enum": list(FILES)}}
    listed = _told("Reports", "The runs there are.", REPORTS_CODES)
    return {
        "/v1/search": {"post": found},
        "/v1/reports": {"get": listed},
        "/v1/reports/{run}": {"get": _file("report", "The page of a run.", [run], [PAGE])},
        "/v1/reports/{run}/{file}": {
            "get": _file("report_file", "A file of a run.", [run, file], list(FILES))
        },
    }


def _file(name: str, summary: str, parameters: list[Schema], files: list[str]) -> Schema:
    kinds = dict.fromkeys(FILES[each].partition(";")[0] for each in files)
    return {
        "operationId": name,
        "summary": summary,
        "parameters": parameters,
        "responses": {
            "200": {
                "description": summary,
                "headers": _REQUEST_ID,
                "content": {kind: {"schema": {}} for kind in kinds},
            },
            **_errors(REPORT_CODES, REPORT_CODES),
        },
    }


def _asking() -> list[Schema]:
    return [
        _header("x-request-id", {"type": "string", "maxLength": MOST_ID}),
        _header("x-fupan-task", {"type": "string"}),
        _header("x-fupan-cache", {"type": "string"}),
        _header("x-fupan-cache-force", {"enum": ["0", "1"]}),
        _header("idempotency-key", {"type": "string", "maxLength": 2 * MOST_ID}),
    ]


def _joined() -> Schema:
    return {
        "type": "string",
        "pattern": "^([1-9]|1[0-9])$",
        "description": f"At most {MOST_JOINED}",
    }


def _header(name: str, schema: Schema) -> Schema:
    return {"name": name, "in": "header", "required": False, "schema": schema}


def _body(schema: str) -> Schema:
    return {"required": True, "content": {"application/json": {"schema": _ref(schema)}}}


def _json(schema: str, description: str, headers: Schema) -> Schema:
    return {
        "description": description,
        "headers": headers,
        "content": {"application/json": {"schema": _ref(schema)}},
    }


def _errors(statuses: Iterable[str], codes: Codes | None = None) -> Schema:
    """Of these statuses. `codes`: those that an error of each may have, where they are known."""
    errors = {}
    for status in sorted(statuses):
        headers = _RETRY if status in ("429", "503") else _REQUEST_ID
        errors[status] = _json("Error", _ERRORS[status], headers)
        if codes is not None:
            code = {"properties": {"code": {"enum": list(codes[status])}}}
            coded = {"allOf": [_ref("Error"), {"properties": {"error": code}}]}
            errors[status]["content"] = {"application/json": {"schema": coded}}
    return errors


def _ref(schema: str) -> Schema:
    return {"$ref": f"#/components/schemas/{schema}"}
