"""The simulated provider over HTTP: its answers and its figures."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from pydantic import ValidationError

from serve.simulated import Settings, SimulatedProvider
from tests.serve.simulated_requests import (
    RESULTS,
    analysis,
    calling,
    chat,
    content,
    json_schema,
    results,
    strict_object,
    wait_until,
)


def test_each_record_gets_the_answer_that_the_truth_has_for_it() -> None:
    texts = ["db: connection refused", "all quiet", "great tool", "great, but connection refused"]
    with calling() as caller:
        response = caller.post(analysis(texts))
    found = results(response)
    jsonschema.validate(json.loads(content(response)), RESULTS)
    assert [r["id"] for r in found] == ["1", "2", "3", "4"]
    assert [r["outcome"] for r in found] == ["problem", "normal", "positive", "problem"]
    (issue,) = found[0]["issues"]
    assert issue["quote"] == "connection refused"
    assert issue["severity"] == "high"
    assert issue["basis"] == "stated"
    assert issue["event"] in ("No connection", "Refused")
    assert found[1]["issues"] == []
    assert [i["severity"] for i in found[2]["issues"]] == ["info"]
    assert [i["quote"] for i in found[3]["issues"]] == ["connection refused", "great"]


def test_the_same_record_gets_the_same_answer_in_other_company() -> None:
    text = "9: connection refused"
    with calling() as caller:
        alone = results(caller.post(analysis([text])))[0]
        later = results(caller.post(analysis(["x", "y", text])))[2]
    assert alone["issues"] == later["issues"]


def test_the_wording_is_in_the_language_the_instructions_ask_for() -> None:
    with calling() as caller:
        reply = caller.post(analysis(["db 连接被拒绝"], system="请用中文回答，输出 JSON。"))
    assert results(reply)[0]["issues"][0]["event"] == "连接失败"


@pytest.mark.parametrize(
    ("form", "system"),
    [
        ({"type": "json_object"}, 'Reply with JSON: {"results": [...]}'),
        (None, 'Reply with JSON and nothing else: {"results": [...]}'),
    ],
)
def test_results_are_given_where_the_instructions_ask_for_them(
    form: dict[str, Any] | None, system: str
) -> None:
    with calling() as caller:
        reply = caller.post(analysis(["a", "b"], response_format=form, system=system))
    assert [r["id"] for r in results(reply)] == ["1", "2"]


def test_a_schema_written_out_in_the_instructions_is_followed() -> None:
    schema = strict_object({"title": {"type": "string", "minLength": 2}})
    system = f"One {{JSON}} object like this: {json.dumps(schema)}"
    with calling() as caller:
        text = content(caller.post(chat("x", system=system)))
    assert json.loads(text) == {"title": "--"}


def test_without_a_word_of_json_the_answer_is_plain_text() -> None:
    with calling() as caller:
        text = content(caller.post(chat("hello")))
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)


def test_another_schema_gets_its_smallest_value() -> None:
    schema = strict_object(
        {
            "kind": {"enum": ["b", "a"]},
            "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}, "minItems": 2},
        }
    ) | {"$defs": {"part": strict_object({"n": {"type": "integer", "minimum": 3}})}}
    with calling() as caller:
        value = json.loads(content(caller.post(chat("x", response_format=json_schema(schema)))))
    assert value == {"kind": "b", "parts": [{"n": 3}, {"n": 3}]}


def test_things_to_be_named_get_one_item_each_filled_from_their_own_strings() -> None:
    text = {"type": "string"}
    item = strict_object({"id": text, "title": text, "action": text, "severity_reason": text})
    schema = strict_object({"themes": {"type": "array", "items": item}})
    lines = [
        {
            "id": "1",
            "count": 3,
            "issues": [{"event": "Pool is full", "cause": "Leak", "suggestion": "Mend it"}],
        },
        {"id": "2", "title": "Slow search"},
    ]
    user = "\n".join(json.dumps(line) for line in lines)
    with calling() as caller:
        reply = caller.post(chat(user, response_format=json_schema(schema)))
        stats = caller.provider.stats()
    assert json.loads(content(reply))["themes"] == [
        {"id": "1", "title": "Pool is full", "action": "Mend it", "severity_reason": "Leak"},
        {
            "id": "2",
            "title": "Slow search",
            "action": "Slow search",
            "severity_reason": "Slow search",
        },
    ]
    assert stats["classes"]["other"]["answers"] == 1
    assert stats["classes"]["analysis"]["answers"] == 0


def test_an_answer_longer_than_allowed_is_cut_and_says_so() -> None:
    with calling() as caller:
        reply = caller.post(analysis(["connection refused"] * 5, max_completion_tokens=100))
        stats = caller.provider.stats()
    assert reply.json()["choices"][0]["finish_reason"] == "length"
    assert reply.json()["usage"]["completion_tokens"] <= 100
    with pytest.raises(json.JSONDecodeError):
        json.loads(content(reply))
    assert stats["by_finish_reason"] == {"length": 1}


def test_the_figures_say_what_happened() -> None:
    with calling(rpm=60, request_burst=3) as caller:
        caller.post(analysis(["connection refused", "b"]))
        caller.post(analysis(["b"], max_tokens=5))
        caller.post(analysis(["b"], max_tokens=5))
        stats = caller.provider.stats()
        served = httpx.get(f"{caller.provider.root_url}/stats").json()
    assert stats == served
    assert stats["requests"] == stats["answers"] == 3
    assert stats["by_status"] == {"200": 3}
    assert stats["repeated_after_length"] == 1
    assert sorted(stats["good_answers"].values()) == [1, 1]
    assert stats["records_seen"] == 2
    assert stats["peak_in_flight"] == 1
    assert 0 < stats["first_answer"] <= stats["last_answer"]
    assert stats["prompt_tokens"] > stats["completion_tokens"] > 0


def test_peak_in_flight_counts_what_overlaps() -> None:
    def ask(url: str) -> None:
        with pytest.raises(httpx.TransportError):
            httpx.post(url, json=chat("x"), timeout=60)

    with ThreadPoolExecutor(4) as pool:
        with calling(fault_shares={"hang": 1.0}, hang_seconds=1e9) as caller:
            url = f"{caller.provider.base_url}/chat/completions"
            calls = [pool.submit(ask, url) for _ in range(4)]
            wait_until(lambda: caller.provider.stats()["in_flight"] == 4)
        for call in calls:
            call.result()
    stats = caller.provider.stats()
    assert (stats["peak_in_flight"], stats["in_flight"]) == (4, 0)


def test_latency_follows_the_input_and_the_output() -> None:
    # 8 real milliseconds before the first token, then 100 tokens at 5,000 a real second
    settings: dict[str, Any] = {"time_scale": 100, "output_rate": 50.0}
    with calling(**settings) as caller:
        caller.post(chat("x"))
        start = time.monotonic()
        short = caller.post(chat("x"))
        seconds = (time.monotonic() - start) * 100
    tokens = short.json()["usage"]["completion_tokens"]
    assert 0.8 + tokens / 50 <= seconds


def test_a_client_that_leaves_gets_no_good_answer() -> None:
    with calling(time_scale=1, latency=[(1, 30.0)]) as caller:
        with pytest.raises(httpx.ReadTimeout):
            caller.client.post("/chat/completions", json=analysis(["a"]), timeout=0.05)
        caller.client.close()
        wait_until(lambda: caller.provider.stats()["in_flight"] == 0)
        stats = caller.provider.stats()
    assert stats["disconnected"] == 1
    assert stats["by_status"] == {"none": 1}
    assert stats["good_answers"] == {}


def test_the_log_has_a_line_for_each_request(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    with calling(log=log, fault_schedule={2: "reset"}) as caller:
        caller.post(analysis(["connection refused"]))
        with pytest.raises(httpx.TransportError):
            caller.post(analysis(["connection refused"]))
        caller.post(chat("x", model="other"))
    first, second, third = [json.loads(line) for line in log.read_text().splitlines()]
    assert (first["status"], first["fault"], first["class"]) == (200, None, "analysis")
    assert first["good"] == first["records"] == second["records"]
    assert first["at"] == 0 < first["seconds"]
    assert (second["status"], second["fault"], second["good"]) == (None, "reset", [])
    assert first["body"] == second["body"] != third["body"]
    assert (third["status"], third["class"]) == (404, "other")
    assert "connection refused" not in log.read_text()


def test_figures_can_be_read_after_the_end() -> None:
    with SimulatedProvider(Settings(time_scale=1000)) as provider:
        httpx.post(f"{provider.base_url}/chat/completions", json=chat("x"))
    assert provider.stats()["answers"] == 1


def test_a_provider_that_cannot_start_says_why(tmp_path: Path) -> None:
    settings = Settings(log=tmp_path / "missing" / "log.jsonl")
    with pytest.raises(FileNotFoundError), SimulatedProvider(settings):
        pass


@pytest.mark.parametrize(
    "wrong",
    [
        {"rps": 3},
        {"request_burst": 3},
        {"latency": [(2, 1), (1, 2)]},
        {"outages": [(5, 5)]},
        {"fault_shares": {"cut": 0.6, "hang": 0.6}},
        {"fault_shares": {"explode": 0.1}},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate(wrong)


@pytest.mark.slow
def test_it_serves_until_it_is_interrupted() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    code = (
        "from serve.simulated import Settings, serve_forever;"
        f"serve_forever(Settings(fault_shares={{'hang': 1.0}}), port={port})"
    )
    server = subprocess.Popen([sys.executable, "-c", code])
    url = f"http://127.0.0.1:{port}"

    def up() -> bool:
        try:
            return httpx.get(f"{url}/stats").status_code == 200
        except httpx.ConnectError:
            return False

    try:
        wait_until(up, seconds=120)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/v1/chat/completions", json=chat("x"), timeout=0.01)
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) == 0
