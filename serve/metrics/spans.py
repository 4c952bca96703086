"""One request -> one span of OpenTelemetry, where the standard OTEL_* environment asks for spans.

Invariant: no exporter, no cost; an exporter that is named and not installed is a warning. A span
holds no text of a prompt or an answer, and no key.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Self

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from serve.gateway.contract import Answered, Call

SERVICE = "fupan"
"""The name of the service where OTEL_SERVICE_NAME gives none."""
EXPORTERS = "opentelemetry_traces_exporter"
"""The entry points that OpenTelemetry's packages register."""
FLUSH_SECONDS = 5.0
"""For what waits to be exported at the end."""
FAILED = 500
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_OPERATIONS = {"chat/completions": "chat", "embeddings": "embeddings", "analyze": "chat"}
_LONGEST = 40
"""Characters of a provider's word for how an answer ended."""
_NANO = 1_000_000_000

_LOG = logging.getLogger(__name__)


class Spans:
    """Who exports the spans of one replica."""

    def __init__(self, exporter: SpanExporter) -> None:
        """Spans are exported in the background, in batches (OTEL_BSP_*)."""
        self.exporter = exporter
        # What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say goes before.
        named = Resource({"service.name": SERVICE}).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=named, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer(SERVICE)
        self._context = TraceContextTextMapPropagator()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self | None:
        """As OTEL_TRACES_EXPORTER (or an endpoint for OTLP) says; None where it asks for none."""
        if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
            return None
        name = environment.get("OTEL_TRACES_EXPORTER", "")
        if not name and any(environment.get(each) for each in _ENDPOINTS):
            name = "otlp"
        if name in ("", "none"):
            return None
        found = list(entry_points(group=EXPORTERS, name=name))
        if not found:
            _LOG.warning(
                "no spans: the exporter %r (OTEL_TRACES_EXPORTER) is not installed; for otlp: pip "
                "install opentelemetry-exporter-otlp",
                name,
            )
            return None
        return cls(found[0].load()())

    async def aclose(self) -> None:
        """Export what waits, for `FLUSH_SECONDS` at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                await asyncio.to_thread(self._provider.shutdown)

    def record(
        self,
        endpoint: str,
        status: int,
        call: Call | None,
        about: Answered,
        seconds: float,
        headers: Mapping[str, str],
    ) -> None:
        """A request that is over, see `Metrics.observe`; one that asks no model has no span."""
        if endpoint not in _OPERATIONS:
            return
        ended = time.time_ns()
        span = self._tracer.start_span(
            f"POST /v1/{endpoint}",
            context=self._context.extract(headers) if "traceparent" in headers else None,
            kind=SpanKind.SERVER,
            attributes=_attributes(endpoint, status, call, about),
            start_time=ended - int(seconds * _NANO),
        )
        if status >= FAILED:
            span.set_status(Status(StatusCode.ERROR))
        span.end(ended)


def _attributes(
    endpoint: str, status: int, call: Call | None, about: Answered
) -> dict[str, AttributeValue]:
    """OpenTelemetry's own names (HTTP, GenAI) where it has some."""
    found: dict[str, AttributeValue | None] = {
        "http.route": f"/v1/{endpoint}",
        "http.response.status_code": status,
        "gen_ai.operation.name": _OPERATIONS.get(endpoint),
        "error.type": str(status) if status >= FAILED else None,
    }
    if call is not None:
        found |= {
            "fupan.request_id": call.request_id,
            "fupan.tenant": call.caller.tenant or None,
            "fupan.stream": call.stream,
            "fupan.task": call.task.name if call.task else None,
            "fupan.cache": about.cache,
            "fupan.attempts": about.attempts,
            "fupan.queue_seconds": about.queued,
            "fupan.sent_seconds": about.sent,
            "fupan.first_byte_seconds": about.first_byte,
            "fupan.last_byte_seconds": about.last_byte,
        }
    if about.target is not None:
        found["gen_ai.provider.name"] = about.target.provider
        found["gen_ai.response.model"] = about.target.model
    if about.finish_reason is not None:
        found["gen_ai.response.finish_reasons"] = [about.finish_reason[:_LONGEST]]
    if about.usage is not None:
        found["gen_ai.usage.input_tokens"] = about.usage.tokens_in
        found["gen_ai.usage.output_tokens"] = about.usage.tokens_out
        found["fupan.cached_tokens"] = about.usage.cached
    if about.cost is not None:
        found["fupan.cost"] = float(about.cost)
        found["fupan.currency"] = about.currency
    return {name: value for name, value in found.items() if value is not None}
