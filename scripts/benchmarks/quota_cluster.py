"""The process behind `Serving` that is a Ray cluster for others: its address is in the file
`ready`, and it ends with its input."""

from __future__ import annotations

import sys
from pathlib import Path

import orjson
import ray

from scripts.benchmarks.gateway_upstream import HOST

_STORE_BYTES = 512 * 2**20


def main() -> None:
    """Be there."""
    told = orjson.loads(sys.argv[1])
    ray.init(
        address="local",
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=_STORE_BYTES,
        _node_ip_address=HOST,
    )
    ready = Path(told["ready"])
    written = ready.with_suffix(".new")
    written.write_text(ray.get_runtime_context().gcs_address)
    written.rename(ready)
    sys.stdin.read()
    ray.shutdown()


if __name__ == "__main__":
    main()
