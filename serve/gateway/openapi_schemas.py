"""The values of the OpenAI protocol that the gateway looks at, as JSON Schemas.

Invariant: what a schema of a request allows, `request.py` takes; what it leaves open is passed on.
"""

from __future__ import annotations

from typing import Any, Final

from serve.gateway.analysis import KINDS, PARTS
from serve.gateway.request import MOST_CHOICES, MOST_TOKENS

Schema = dict[str, Any]

NAME: Final[Schema] = {"type": "string", "minLength": 1}
_COUNT: Final[Schema] = {"type": ["integer", "null"], "minimum": 1, "maximum": MOST_TOKENS}
_TOKENS: Final[Schema] = {
    "type": "array",
    "minItems": 1,
    "items": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
}

SCHEMAS: Final[dict[str, Schema]] = {
    "ChatRequest": {
        "type": "object",
        "required": ["model", "messages"],
        "properties": {
            "model": NAME,
            "messages": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "required": ["role"],
                    "properties": {
                        "role": {
                            "enum": ["developer", "system", "user", "assistant", "tool", "function"]
                        },
                        "content": {
                            "type": ["string", "array", "null"],
                            "items": {"type": "object"},
                        },
                    },
                },
            },
            "stream": {"type": ["boolean", "null"]},
            "n": {"type": ["integer", "null"], "minimum": 1, "maximum": MOST_CHOICES},
            "max_tokens": _COUNT,
            "max_completion_tokens": _COUNT,
            "temperature": {"type": ["number", "null"], "minimum": 0, "maximum": 2},
        },
        "additionalProperties": True,
    },
    "ChatCompletion": {
        "type": "object",
        "required": ["choices"],
        "properties": {
            "choices": {"type": "array", "minItems": 1, "items": {"type": "object"}},
            "usage": {"type": ["object", "null"]},
        },
    },
    "EmbeddingRequest": {
        "type": "object",
        "required": ["model", "input"],
        "properties": {
            "model": NAME,
            "input": {
                "anyOf": [
                    {"type": "string", "minLength": 1},
                    {
                        "type": "array",
                        "minItems": 1,
                        "items": {"type": "string", "minLength": 1},
                    },
                    _TOKENS,
                    {"type": "array", "minItems": 1, "items": _TOKENS},
                ]
            },
            "encoding_format": {"enum": ["float", "base64"]},
        },
        "additionalProperties": True,
    },
    "Embeddings": {
        "type": "object",
        "required": ["data"],
        "properties": {"data": {"type": "array", "minItems": 1, "items": {"type": "object"}}},
    },
    "Document": {
        "type": "object",
        "required": ["text"],
        "properties": {
            "text": {"type": "string", "minLength": 1, "pattern": "\\S"},
            "kind": {"enum": [*KINDS, None]},
            "language": {"enum": ["zh", "en", "auto", None]},
            "model": NAME,
            "parts": {
                "type": ["array", "null"],
                "minItems": 1,
                "items": {"enum": list(PARTS)},
            },
        },
        "additionalProperties": False,
    },
    "Analysis": {
        "type": "object",
        "required": ["object", "model", "language", "errors", "usage"],
        "properties": {
            "object": {"const": "analysis"},
            "model": {"type": "string"},
            "language": {"enum": ["zh", "en"]},
            "errors": {"type": "object"},
            "usage": {"type": "object"},
            "cost": {"type": ["string", "null"]},
            "currency": {"type": ["string", "null"]},
        },
    },
    "Model": {
        "type": "object",
        "required": ["id", "object", "created", "owned_by"],
        "properties": {
            "id": NAME,
            "object": {"const": "model"},
            "created": {"type": "integer"},
            "owned_by": {"type": "string"},
        },
    },
    "Models": {
        "type": "object",
        "required": ["object", "data"],
        "properties": {
            "object": {"const": "list"},
            "data": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}},
        },
    },
    "Health": {
        "type": "object",
        "required": ["status"],
        "properties": {
            "status": {"enum": ["ok", "ready"]},
            "version": {"type": "string"},
        },
    },
    "Error": {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["message", "type", "param", "code"],
                "properties": {
                    "message": {"type": "string"},
                    "type": {"type": "string"},
                    "param": {"type": ["string", "null"]},
                    "code": {"type": ["string", "null"]},
                },
            }
        },
    },
}
