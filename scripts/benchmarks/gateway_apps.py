"""The process behind `Serving`: the pass-through and the gateway side by side in one Ray cluster,
each with one replica, so that they can be put under load by turns.

It is told what to serve by its argument and serves until its input ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

import orjson
import ray
from ray import serve as ray_serve

from scripts.benchmarks.gateway_bare import bare_application
from scripts.benchmarks.gateway_serving import BARE, GATEWAY
from scripts.benchmarks.gateway_stages import begin
from scripts.benchmarks.gateway_upstream import HOST
from serve.app import application, read_settings

_STORE_BYTES = 128 * 2**20


def main() -> None:
    """Serve."""
    told = orjson.loads(sys.argv[1])
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=_STORE_BYTES,
        _node_ip_address=HOST,
        runtime_env={"worker_process_setup_hook": begin},
    )
    try:
        ray_serve.start(http_options={"host": HOST, "port": told["port"]})
        ray_serve.run(bare_application(told["base_url"]), name=BARE, route_prefix=f"/{BARE}")
        settings = read_settings({"config": told["config"]})
        ray_serve.run(application(settings), name=GATEWAY, route_prefix="/")
        Path(told["ready"]).touch()
        sys.stdin.read()
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
