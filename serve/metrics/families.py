"""Everything that is counted: its name, what it means, its labels and its buckets.

Invariant: names are Prometheus's own style (base units, `_total` of counters), and are not changed:
dashboards hold them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["counter", "gauge", "histogram"]

OWN_SECONDS: Final = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0)
"""Of what the gateway does itself: from a fifth of a millisecond on."""
LONG_SECONDS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0)
"""Of what waits for a model, or a turn."""
TOKEN_SECONDS: Final = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0)
"""Of one token: 500 to 1 a second."""


@dataclass(frozen=True, slots=True)
class Family:
    """What is counted under one name. `bounds`: upper ends of the buckets of a histogram, in its
    unit."""

    name: str
    help: str
    kind: Kind
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()


_BY_MODEL = ("provider", "model")

REQUESTS = Family(
    "fupan_requests",
    "Requests by endpoint and status; 499: the client left.",
    "counter",
    ("endpoint", "status"),
)
SECONDS = Family(
    "fupan_request_seconds",
    "From the arrival of a request to the last byte of its answer.",
    "histogram",
    ("endpoint",),
    LONG_SECONDS,
)
GATEWAY = Family(
    "fupan_gateway_seconds",
    "From arrival until a provider (or the search) was asked, or a kept answer was sent, without "
    "waiting for a turn or a permit. Requests that were asked once.",
    "histogram",
    ("endpoint",),
    OWN_SECONDS,
)
QUEUE = Family(
    "fupan_queue_seconds",
    "Waiting for a turn and for a permit.",
    "histogram",
    ("endpoint",),
    LONG_SECONDS,
)
SERIALISE = Family(
    "fupan_serialise_seconds",
    "From the last byte of the provider (or the search) to ours.",
    "histogram",
    ("endpoint",),
    OWN_SECONDS,
)
FIRST_BYTE = Family(
    "fupan_upstream_first_byte_seconds",
    "From asking a provider to the first byte of its answer.",
    "histogram",
    _BY_MODEL,
    LONG_SECONDS,
)
LAST_BYTE = Family(
    "fupan_upstream_last_byte_seconds",
    "From asking a provider to the last byte of its answer.",
    "histogram",
    _BY_MODEL,
    LONG_SECONDS,
)
TTFT = Family(
    "fupan_time_to_first_token_seconds",
    "From the arrival of a request for a stream to the first event that says something.",
    "histogram",
    _BY_MODEL,
    LONG_SECONDS,
)
TPOT = Family(
    "fupan_time_per_output_token_seconds",
    "Of each token of a stream after its first.",
    "histogram",
    _BY_MODEL,
    TOKEN_SECONDS,
)
RETRIES = Family("fupan_retries", "Attempts after a request's first.", "counter", _BY_MODEL)
TOKENS = Family(
    "fupan_tokens",
    "Tokens as the provider counted them; cached is the part of in that it had cached.",
    "counter",
    (*_BY_MODEL, "kind"),
)
COST = Family(
    "fupan_cost",
    "What providers bill, where their prices are known.",
    "counter",
    (*_BY_MODEL, "currency"),
)
CACHE = Family(
    "fupan_cache",
    "What the caches said to requests: off, miss, exact, near, semantic, joined, repeated.",
    "counter",
    ("endpoint", "result"),
)
CUT = Family(
    "fupan_cut_answers",
    "Answers that the limit of output tokens cut off, by the task that the caller named.",
    "counter",
    ("task",),
)
TASKS = Family("fupan_answers", "Answers, by the task that the caller named.", "counter", ("task",))
TENANT_REQUESTS = Family(
    "fupan_tenant_requests", "Requests by tenant.", "counter", ("tenant", "status")
)
TENANT_TOKENS = Family("fupan_tenant_tokens", "Tokens by tenant.", "counter", ("tenant", "kind"))
TENANT_COST = Family("fupan_tenant_cost", "Cost by tenant.", "counter", ("tenant", "currency"))
RECHECKS = Family(
    "fupan_cache_rechecks",
    "Hits that were also asked live: right, wrong, failed (no live answer), skipped (enough were "
    "under way). False hits: wrong / (right + wrong).",
    "counter",
    ("cache", "result"),
)
IN_FLIGHT = Family("fupan_requests_in_flight", "Requests that have a turn.", "gauge")
WAITING = Family("fupan_requests_waiting", "Requests that wait for a turn.", "gauge")
KEYS_UNUSABLE = Family(
    "fupan_keys_file_unusable",
    "1 while the file of API keys cannot be read or makes no sense: the last good keys hold.",
    "gauge",
)
MODEL_QUEUE = Family(
    "fupan_model_queue", "Requests that wait in a process of a model.", "gauge", ("model",)
)
MODEL_RUNNING = Family(
    "fupan_model_running", "Requests that a process of a model is answering.", "gauge", ("model",)
)
MODEL_BATCH_SIZE = Family(
    "fupan_model_batch_size",
    "Texts of a batch, or streams of a step, lately.",
    "gauge",
    ("model",),
)
MODEL_TOKENS = Family(
    "fupan_model_tokens_per_second",
    "Tokens that a process of a model reads (vectors) or writes a second, lately.",
    "gauge",
    ("model",),
)
MODEL_CACHE_USE = Family(
    "fupan_model_cache_use",
    "The share of a model's cache that is in use, from 0 to 1.",
    "gauge",
    ("model",),
)
GPU_USE = Family(
    "fupan_gpu_utilisation",
    "The share of the last moments in which a GPU of a model computed, from 0 to 1.",
    "gauge",
    ("model", "gpu"),
)
GPU_MEMORY = Family(
    "fupan_gpu_memory_bytes",
    "Memory of a GPU of a model, of all that use it: used, total.",
    "gauge",
    ("model", "gpu", "kind"),
)

FAMILIES: Final = (
    *(REQUESTS, SECONDS, GATEWAY, QUEUE, SERIALISE, FIRST_BYTE, LAST_BYTE, TTFT, TPOT),
    *(RETRIES, TOKENS, COST, CACHE, CUT, TASKS, TENANT_REQUESTS, TENANT_TOKENS, TENANT_COST),
    *(RECHECKS, IN_FLIGHT, WAITING, KEYS_UNUSABLE),
    *(MODEL_QUEUE, MODEL_RUNNING, MODEL_BATCH_SIZE, MODEL_TOKENS, MODEL_CACHE_USE),
    *(GPU_USE, GPU_MEMORY),
)
VERSION: Final = hashlib.sha256(repr(FAMILIES).encode()).hexdigest()[:8]
"""Of all of them: replicas that count otherwise have other ones."""
