"""What the gateway measures of each request, for Prometheus and OpenTelemetry.

    families.py    the names, labels and buckets of everything that is counted
    numbers.py     the numbers of one replica, and a snapshot of them
    metrics.py     one request -> numbers and a span
    prometheus.py  snapshots -> the text that Prometheus reads
    board.py       the snapshots of all replicas
    spans.py       one request -> one span of OpenTelemetry

Invariant: no label holds what a client wrote: models and providers come from the configuration,
tenants from the API keys, and how many there are is bounded. Nothing here imports Ray.
"""

from serve.metrics.metrics import Metrics

__all__ = ["Metrics"]
