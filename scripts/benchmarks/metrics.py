"""What measuring a request costs: its numbers, its span, and the text for Prometheus.

CPU microseconds of a request as the gateway hands it over, by the best of several rounds; the text
is made of one replica and of twenty, each with three models. The exporter of spans keeps nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from scripts.benchmarks.checks import Bar, print_table, verdict
from serve.ask.contract import Usage
from serve.gateway.contract import Answered, Call, Caller, Target
from serve.gateway.settings import GatewaySettings
from serve.metrics import Metrics
from serve.metrics.prometheus import render
from serve.metrics.spans import Spans

_ROUNDS = 5
_BAR = 30.0
"""Microseconds a request, without spans."""
_REPLICAS = 20
_MODELS = ("large", "medium", "small")
_PARENT = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


class _Nowhere(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone."""
    parser.add_argument("--requests", type=int, default=20_000, help="measured in each round")


def run(args: argparse.Namespace) -> int:
    """Measure; 0 if the bar holds."""
    settings = GatewaySettings.model_validate(
        {"providers": {"main": {"base_url": "http://127.0.0.1:1/v1", "models": _MODELS}}}
    )
    plain = Metrics(settings)
    spans = Metrics(settings, spans=Spans(_Nowhere()))
    numbers = _microseconds(lambda: _observe(plain, args.requests), args.requests)
    span = _microseconds(lambda: _observe(spans, args.requests), args.requests)
    part = _microseconds(lambda: _observe(spans, args.requests, _PARENT), args.requests)
    one = plain.snapshot()
    all_of_them = {f"{number:08x}": one for number in range(_REPLICAS)}
    text = _microseconds(lambda: render({"": one}), 1) / 1000
    texts = _microseconds(lambda: render(all_of_them), 1) / 1000
    print_table(
        ["what", "takes"],
        [
            ["the numbers of a request", f"{numbers:.1f} us"],
            ["and its span", f"{span:.1f} us"],
            ["and its span, in a caller's trace", f"{part:.1f} us"],
            ["the text, one replica", f"{text:.1f} ms"],
            [f"the text, {_REPLICAS} replicas", f"{texts:.1f} ms"],
        ],
    )
    return verdict([Bar("us a request, its numbers", round(numbers, 1), "<=", _BAR)])


def _observe(metrics: Metrics, requests: int, headers: Mapping[str, str] | None = None) -> None:
    call = Call("chat/completions", {}, Caller("app", "team"), "r", "large", True, 10, 60.0)
    about = Answered(
        target=Target("main", "large"),
        usage=Usage(100, 50, 10),
        cost=Decimal("0.00125"),
        currency="USD",
        cache="miss",
        finish_reason="stop",
        attempts=1,
        queued=0.001,
        sent=0.002,
        first_byte=0.3,
        last_byte=0.9,
    )
    for _ in range(requests):
        metrics.observe("chat/completions", 200, call, about, 0.91, headers)


def _microseconds(work: Callable[[], object], of: int) -> float:
    best = float("inf")
    for _ in range(_ROUNDS):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best / of * 1e6
