"""Calls of tools, as the simulated model makes them. Pure.

Invariant: a call names a tool that was given, and its arguments fit the schema of that tool.
"""

from __future__ import annotations

from typing import Any

import orjson

from serve.simulated_protocol import ApiError, ChatRequest
from serve.simulated_schema import SchemaError, fit


def tool_called(request: ChatRequest) -> tuple[str, str] | None:
    """The tool that is called in answer to `request`, and its arguments as JSON: the one that
    `tool_choice` names, else the first; None where none is given or wanted, or where what a tool
    said is the last message. Raises ApiError (400)."""
    choice = request.tool_choice
    if not request.tools or choice == "none" or request.messages[-1].role == "tool":
        return None
    wanted = choice.get("function", {}).get("name") if isinstance(choice, dict) else None
    for tool in request.tools:
        if wanted in (None, tool.function.name):
            return tool.function.name, _arguments(tool.function.parameters)
    raise ApiError(
        400,
        f"Invalid value for 'tool_choice': there is no tool {wanted!r}.",
        code="invalid_value",
        param="tool_choice",
    )


def _arguments(schema: dict[str, Any]) -> str:
    try:
        return orjson.dumps(fit(schema, {}) if schema else {}).decode()
    except SchemaError as error:
        raise ApiError(
            400, f"Invalid schema for a tool: {error}.", code="invalid_value", param="tools"
        ) from error
