"""The process behind `Serving`: the plain deployments and `fupan serve`'s applications side by side
in one Ray cluster, so that they can be asked by turns.

It is told what to serve by its argument and serves until its input ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

import orjson
import ray
from ray import serve as ray_serve
from ray.serve.schema import LoggingConfig

from scripts.benchmarks.embed_plain import plain_application
from scripts.benchmarks.gateway_upstream import HOST
from serve.app import APPLICATION, application
from serve.gateway.settings import GatewaySettings
from serve.models.app import placement, targets

MODEL = "measured"
"""Its name in `models`."""
PLAIN = {"plain": 1, "plain-wide": 2}
"""The other applications, and where they are, with their processors."""
_STORE_BYTES = 128 * 2**20


def main() -> None:
    """Serve."""
    told = orjson.loads(sys.argv[1])
    settings = GatewaySettings.model_validate(
        {"models": {MODEL: {"embedder": told["model"]}}, "serve": {"state": told["state"]}}
    )
    ray.init(
        address="local",
        num_cpus=sum(PLAIN.values()),
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=_STORE_BYTES,
        _node_ip_address=HOST,
    )
    try:
        ray_serve.start(
            http_options={"host": HOST, "port": told["port"]},
            logging_config=LoggingConfig(enable_access_log=False),
        )
        for name, cpus in PLAIN.items():
            plain = plain_application(told["model"], cpus)
            ray_serve.run(plain, name=name, route_prefix=f"/{name}")
        placements = {name: placement(entry) for name, entry in settings.models.items()}
        ray_serve.run_many(targets(settings, placements))
        ray_serve.run(application(settings), name=APPLICATION, route_prefix="/")
        Path(told["ready"]).touch()
        sys.stdin.read()
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
