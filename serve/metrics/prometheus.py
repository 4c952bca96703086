"""Snapshots of replicas -> the text that Prometheus reads. Pure.

Invariant: a series belongs to one replica (label `replica` where there are several), so that it
never falls while that one lives: a sum over replicas would fall whenever one of them ends, which
Prometheus reads as a restart and counts all that is left once more. Sums are made where they are
shown: `sum without (replica) (rate(...))`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from serve.metrics.families import FAMILIES, Family
from serve.metrics.numbers import Labels, Snapshot

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
REPLICA = "replica"


def render(snapshots: Mapping[str, Snapshot]) -> bytes:
    """The text for snapshots by replica; of a single one called "" without that label."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Snapshots(snapshots))
    return generate_latest(registry)


class _Snapshots(Collector):
    def __init__(self, snapshots: Mapping[str, Snapshot]) -> None:
        self._snapshots = snapshots
        self._labelled = set(snapshots) != {""}

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        for family in FAMILIES:
            labels = (*family.labels, REPLICA) if self._labelled else family.labels
            metric = _metric(family, labels)
            for replica, snapshot in self._snapshots.items():
                own = (replica,) if self._labelled else ()
                for values, numbers in snapshot.get(family.name, ()):
                    if _fits(family, values, numbers):
                        _add(metric, family, (*values, *own), numbers)
            yield metric


def _fits(family: Family, values: Labels, numbers: list[float]) -> bool:
    """Whether these are numbers of `family`: a replica of another version may count otherwise."""
    cells = len(family.bounds) + 2 if family.kind == "histogram" else 1
    return len(values) == len(family.labels) and len(numbers) == cells


def _metric(family: Family, labels: tuple[str, ...]) -> Metric:
    if family.kind == "counter":
        return CounterMetricFamily(family.name, family.help, labels=labels)
    if family.kind == "gauge":
        return GaugeMetricFamily(family.name, family.help, labels=labels)
    return HistogramMetricFamily(family.name, family.help, labels=labels)


def _add(metric: Metric, family: Family, labels: tuple[str, ...], numbers: list[float]) -> None:
    if isinstance(metric, HistogramMetricFamily):
        *counts, total = numbers
        ends = [*map(floatToGoString, family.bounds), "+Inf"]
        metric.add_metric(labels, list(zip(ends, accumulate(counts), strict=True)), total)
    elif isinstance(metric, CounterMetricFamily | GaugeMetricFamily):
        metric.add_metric(labels, numbers[0])
