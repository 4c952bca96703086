"""One span a request, with the same facts, where OpenTelemetry's environment asks for spans."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import ConsoleSpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from serve.gateway.contract import Answered
from serve.metrics import Metrics
from serve.metrics.spans import Spans
from tests.serve.test_metrics import ASKED, CALL, CHAT, SETTINGS

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


async def exported(*observed: tuple[object, ...]) -> tuple[ReadableSpan, ...]:
    exporter = InMemorySpanExporter()
    metrics = Metrics(SETTINGS, spans=Spans(exporter))
    for each in observed:
        metrics.observe(*each)  # type: ignore[arg-type]
    await metrics.aclose()
    return exporter.get_finished_spans()


async def test_a_request_is_one_span_under_its_callers() -> None:
    before = time.time_ns()
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "authorization": "Bearer s3cret"}
    (span,) = await exported((CHAT, 200, CALL, ASKED, 1.5, headers))
    assert span.name == f"POST /v1/{CHAT}"
    assert span.context is not None
    assert span.parent is not None
    assert f"{span.context.trace_id:032x}" == TRACE
    assert f"{span.parent.span_id:016x}" == PARENT
    assert span.end_time is not None
    assert span.start_time is not None
    assert span.end_time - span.start_time == 1_500_000_000
    assert before <= span.end_time <= time.time_ns()
    found = dict(span.attributes or {})
    assert found["gen_ai.provider.name"] == "main"
    assert found["gen_ai.response.model"] == "large"
    assert (found["gen_ai.usage.input_tokens"], found["gen_ai.usage.output_tokens"]) == (100, 21)
    assert (found["fupan.cost"], found["fupan.currency"]) == (0.0125, "USD")
    assert (found["fupan.cache"], found["fupan.tenant"]) == ("miss", "shop")
    assert (found["fupan.queue_seconds"], found["fupan.first_byte_seconds"]) == (0.25, 0.76)
    assert "s3cret" not in span.to_json()


async def test_what_is_no_parent_begins_a_trace_of_its_own() -> None:
    spans = await exported(
        (CHAT, 200, CALL, ASKED, 1.0, {"traceparent": "garbage"}),
        (CHAT, 200, CALL, ASKED, 1.0, {}),
        (CHAT, 200, CALL, ASKED, 1.0),
    )
    assert len(spans) == 3
    assert all(span.parent is None for span in spans)


async def test_a_failure_is_an_error_and_a_clients_mistake_is_none() -> None:
    failed, wrong, left = await exported(
        (CHAT, 503, CALL, Answered(), 1.0),
        (CHAT, 400, None, Answered(), 1.0),
        (CHAT, 499, replace(CALL, stream=True), Answered(), 1.0),
    )
    assert not failed.status.is_ok
    assert wrong.status.is_ok or wrong.status.is_unset
    assert left.status.is_unset


async def test_what_asks_no_model_has_no_span() -> None:
    assert not await exported(("healthz", 200, None, Answered(), 0.001))


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"},
        {"OTEL_TRACES_EXPORTER": "console", "OTEL_SDK_DISABLED": "true"},
    ],
)
def test_nothing_is_exported_unasked(environment: dict[str, str]) -> None:
    assert Spans.from_environment(environment) is None


def test_an_exporter_that_is_not_there_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert Spans.from_environment({"OTEL_TRACES_EXPORTER": "nowhere"}) is None
    assert "'nowhere' (OTEL_TRACES_EXPORTER) is not installed" in caplog.text


async def test_an_exporter_is_taken_by_its_name() -> None:
    spans = Spans.from_environment({"OTEL_TRACES_EXPORTER": "console"})
    assert spans is not None
    assert isinstance(spans.exporter, ConsoleSpanExporter)
    await spans.aclose()
