"""A chat sent to a gateway by plain HTTP, and an error as it is answered."""

from __future__ import annotations

from typing import Any

import httpx

CHAT = {"model": "simulated", "messages": [{"role": "user", "content": "Say hello."}]}
PRICES = {"currency": "CNY", "input": 2, "output": 10}


def chat(http: httpx.Client, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
    return http.post("/v1/chat/completions", json={**CHAT, **body}, headers=headers)


def error(answer: httpx.Response) -> tuple[int, str | None, str | None]:
    told = answer.json()["error"]
    assert set(told) == {"message", "type", "param", "code"}
    assert answer.headers["x-request-id"]
    assert answer.headers["content-type"] == "application/json"
    return answer.status_code, told["code"], told["param"]
