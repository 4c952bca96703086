"""The gateway and the models of fupan.yaml on Ray Serve, for as long as a command runs.

Invariant: of a cluster that was joined only the applications that the command started are ever
deleted, never Serve itself; a cluster of our own ends with the command. What the gateway has begun
it answers before it ends.
"""

from __future__ import annotations

import logging
import os
import random
import re
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from job.cluster import cluster
from job.errors import JobError, UsageError
from serve.ask.errors import Misconfigured
from serve.gateway.settings import GatewaySettings
from serve.metrics.families import IN_FLIGHT, WAITING
from serve.proxy_errors import IMPORT_PATH

if TYPE_CHECKING:
    from job.commands.serve_models import OwnModels

DRAIN_SECONDS = "5"
"""A replica behind the fast ingress stays reachable so long, until HAProxy has forgotten it. Under
load an update lost one request in 700 with 1, none in 1,000 with 5, none in 1,800 with 10. Ray's 30
seconds are for load balancers elsewhere."""
THREADS = "2"
"""Of the fast ingress; Ray's default of 4 is for machines with more cores."""

MARGIN = 30.0
"""Seconds in which the gateway ends beyond those that its replicas have: it is told, the ingress
forgets them, their processes end."""
LOOK_SECONDS = 2.0
"""How long it is waited for to say what it is answering."""
_IN_FLIGHT = re.compile(
    rf"^(?:{IN_FLIGHT.name}|{WAITING.name})(?:\{{[^}}\n]*\}})? ([0-9.e+]+)$", re.MULTILINE
)

BLOCK = 100
"""Ports of the replicas behind the fast ingress, and of the proxy behind them."""
BLOCKS = range(20_000, 30_000, BLOCK)
"""Where such a block begins: below Linux's ephemeral ports, and Ray's own choice from 30000 on."""


@dataclass(frozen=True)
class Where:
    """Where the gateway listens, in which cluster its limits hold, the folder where this machine's
    processes of it write down what they have to say, and the models that it has of its own."""

    host: str
    port: int
    cluster: str
    logs: str
    models: OwnModels

    @property
    def url(self) -> str:
        """Of OpenAI's protocol."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/v1"


def in_flight(url: str) -> int | None:
    """Requests that the gateway at `url` is answering, those that wait for their turn among them;
    None where it does not say, as where it measures nothing."""
    try:
        found = httpx.get(
            f"{url.removesuffix('/v1')}/metrics", timeout=LOOK_SECONDS, trust_env=False
        )
    except httpx.HTTPError:
        return None
    counts = _IN_FLIGHT.findall(found.text)
    return sum(int(float(count)) for count in counts) if counts else None


@contextmanager
def running(
    settings: GatewaySettings, host: str, port: int, replicas: int | None, fast: bool
) -> Iterator[Where]:
    """The gateway at `host` and `port` (at its own, where Serve runs in the cluster already) with
    so many replicas; None: as many as the load asks for. Raises JobError where it does not start,
    UsageError where it runs already.
    """
    with tempfile.TemporaryDirectory(prefix="fupan-serve-") as private:
        # Read by every process of a cluster of our own as it starts.
        for name, value in _environment(fast, Path(private)).items():
            os.environ.setdefault(name, value)
        with cluster():
            yield from _deployed(settings, host, port, replicas)


def _deployed(
    settings: GatewaySettings, host: str, port: int, replicas: int | None
) -> Iterator[Where]:
    import ray
    from ray import serve as ray_serve
    from ray.serve.context import _get_global_client
    from ray.serve.schema import LoggingConfig

    from job.commands.serve_apps import Own, OwnGateway, end, runs, wait_until_gone
    from job.commands.serve_models import start_models
    from job.commands.serve_search import start_search
    from serve.app import APPLICATION, LONGER, application, autoscaling, longest_request

    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    ray_serve.start(
        http_options={"host": host, "port": port},
        logging_config=LoggingConfig(enable_access_log=False),
    )
    options = _get_global_client().http_config
    limit = longest_request(settings) + LONGER + MARGIN
    wait = partial(wait_until_gone, seconds=limit)
    if runs(APPLICATION, wait):
        raise UsageError(
            f"the gateway runs in this cluster already, at port {options.port}. To change it, "
            "`serve deploy` it anew; to end it, end the `fupan serve` that began it, or see "
            "serve/production.yaml"
        )
    asked: list[Own] = []
    try:
        # They load while the gateway starts, and after.
        models = start_models(settings, wait)
        asked.append(models)
        asked.append(start_search(settings, wait))
        try:
            target = application(settings, replicas or autoscaling())
            ray_serve.run(target, name=APPLICATION, route_prefix="/")
        except Exception as error:
            found = ray_serve.status().applications.get(APPLICATION)
            deployments = found.deployments.values() if found else ()
            raise _not_started(error, "".join(each.message for each in deployments)) from error
        address = ray.get_runtime_context().gcs_address
        yield Where(options.host, options.port, address, _logs(), models)
    finally:
        end(OwnGateway(APPLICATION), asked, wait)


def _logs() -> str:
    import ray

    node = ray._private.worker._global_node
    return str(node.get_logs_dir_path())


def _not_started(error: Exception, said: str) -> JobError:
    """`said`: what Ray Serve knows of the deployment, a replica's own error the last line of it."""
    lines = [line.strip() for line in (said or str(error)).splitlines() if line.strip()]
    kind, _, what = (lines or [type(error).__name__])[-1].partition(": ")
    if kind.endswith(f".{Misconfigured.__name__}"):
        return UsageError(what)
    return JobError(f"the gateway did not start: {what or kind}")


def _environment(fast: bool, private: Path) -> dict[str, str]:
    values = {"RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": IMPORT_PATH}
    if not fast:
        return values
    first = _free_block()
    return values | {
        "RAY_SERVE_ENABLE_HA_PROXY": "1",
        # By default the same for every cluster of the machine: HAProxy would go on to send to a
        # port of a replica that ended, and that another cluster's replica has taken.
        "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT": str(first),
        "RAY_SERVE_DIRECT_INGRESS_MIN_HTTP_PORT": str(first + 1),
        "RAY_SERVE_DIRECT_INGRESS_MAX_HTTP_PORT": str(first + BLOCK - 1),
        "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
        "RAY_SERVE_HAPROXY_NBTHREAD": THREADS,
        "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": DRAIN_SECONDS,
        # By default in /tmp/haproxy-serve, where any user of the machine may administer it.
        "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": str(private / "haproxy.cfg"),
        "RAY_SERVE_HAPROXY_SOCKET_PATH": str(private / "admin.sock"),
        "RAY_SERVE_HAPROXY_METRICS_SOCKET_PATH": str(private / "metrics.sock"),
        "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": str(private),
        "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": str(private / "server-state"),
    }


def _free_block() -> int:
    """The first of BLOCK ports that nobody has. Raises UsageError where there are none."""
    for first in random.sample(BLOCKS, len(BLOCKS)):
        if all(_is_free(port) for port in range(first, first + BLOCK)):
            return first
    raise UsageError(f"--fast needs {BLOCK} free ports in a row from {BLOCKS.start} on")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
