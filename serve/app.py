"""The gateway on Ray Serve: what `serve deploy`, `serve run serve.app:build` and `fupan serve` run.

Invariant: what travels to a replica are settings without a secret; the keys of providers and of
clients are read from the environment and the files of the node that the replica runs on. All
replicas, and the runs of the same cluster, share one limiter for each provider and key, and one
account for each API key; each replica can tell the metrics of all.

Ray Serve stops a replica in this order: no new request is sent to it; what it has is answered, for
as long as `graceful_shutdown_timeout_s`; the application's lifespan ends, and with it the gateway.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ray import serve as ray_serve
from ray.serve.config import AutoscalingConfig, BackpressureConfig
from ray.serve.schema import LoggingConfig
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.ask.limiter_actor import RayPermits
from serve.ask.limiter_host import Permits
from serve.ask.once_yaml import load_yaml
from serve.ask.settings import Provider, key_variable
from serve.autoscaling import FEWEST, IN_FLIGHT, LOOK_BACK, MOST, Policy
from serve.gateway.admission import most_visits
from serve.gateway.app import build_app
from serve.gateway.build import build_gateway
from serve.gateway.keys import KeyRing
from serve.gateway.meter import Meter, state_folder
from serve.gateway.meter_actor import RayMeter
from serve.gateway.paths import absolute
from serve.gateway.settings import GatewaySettings, ServeSettings
from serve.metrics_actor import RayBoard
from serve.models.calls import RayCalls
from serve.models.settings import served
from serve.search.calls import RaySearch

APPLICATION = "fupan-gateway"
"""The name of the application in Ray Serve."""
DEPLOYMENT = "Gateway"
"""The name of its one deployment, by which serve/production.yaml sets its options."""
SECTIONS = ("providers", "models", "serve", "search")
"""What is read of fupan.yaml; the rest is the job's."""
ASIDE = 200
"""Requests a replica takes at once beyond those that its own admission lets in or lets wait:
/healthz, /metrics and /v1/models are never behind a slow model."""
LONGER = 15.0
"""Seconds beyond the longest request that a replica has to end."""


class Replica:
    """One replica. Ray Serve builds the ASGI application in its process, on the loop that it
    runs on."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = GatewaySettings.model_validate(settings)

    def __serve_build_asgi_app__(self) -> ASGIApp:
        meter = shared_meter(self._settings.serve)
        application = ray_serve.get_replica_context().app_name
        measured = RayBoard(application) if self._settings.serve.metrics else None
        gateway = build_gateway(
            self._settings,
            permits=shared_permits,
            meter=meter,
            measured=measured,
            models=RayCalls({name: entry for name, _, entry in served(self._settings.models)}),
            search=RaySearch(),
        )
        app = one_id(build_app(gateway))
        # What is loaded by now stays: looking through it for garbage again and again helps nobody.
        gc.collect()
        gc.freeze()
        return app

    async def check_health(self) -> None:
        """Answered on the loop that answers requests: a replica whose loop is stuck is replaced."""


def shared_permits(provider: Provider) -> Permits:
    """The limiter of a provider, which is shared by the cluster."""
    return RayPermits(provider.base_url, key_variable(provider), provider.limits.to_limits())


def shared_meter(settings: ServeSettings) -> Meter | None:
    """The account of API keys, which is shared by the cluster; None where there are no keys."""
    if KeyRing.load(settings).open:
        return None
    return RayMeter(state_folder(settings.state))


def one_id(app: ASGIApp) -> ASGIApp:
    """`app` without the request's id in its answers: Ray Serve's server adds the same to each."""

    async def without(scope: Scope, receive: Receive, send: Send) -> None:
        async def pass_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [h for h in message["headers"] if h[0] != b"x-request-id"]
            await send(message)

        await app(scope, receive, pass_on)

    return without


_deployment = ray_serve.deployment(
    ray_serve.ingress()(Replica),
    name=DEPLOYMENT,
    ray_actor_options={"num_cpus": 0},
    backpressure_config=BackpressureConfig(retry_after_s=1),
    graceful_shutdown_wait_loop_s=1,
    health_check_period_s=5,
    health_check_timeout_s=10,
    logging_config=LoggingConfig(enable_access_log=False),
)


def build(args: dict[str, Any]) -> ray_serve.Application:
    """The application, from `args` of a Serve config file: `config`, the path of a fupan.yaml on
    the node that builds it (the head), or its sections `providers` and `serve` themselves.

    Raises ValueError for what is neither, and where the settings make no sense.
    """
    return application(read_settings(args))


def application(
    settings: GatewaySettings, replicas: int | AutoscalingConfig = 1
) -> ray_serve.Application:
    """The application with so many replicas, or as many as the load asks for."""
    most = most_visits(settings.serve.admission) + ASIDE
    scale = "num_replicas" if isinstance(replicas, int) else "autoscaling_config"
    return _deployment.options(
        max_ongoing_requests=most,
        # Of a proxy. A burst counts as queued until each request is handed to a replica.
        max_queued_requests=most,
        graceful_shutdown_timeout_s=longest_request(settings) + LONGER,
        **{scale: replicas},
    ).bind(settings.model_dump(mode="json", by_alias=True))


def autoscaling(
    fewest: int = FEWEST, most: int = MOST, look_back: float = LOOK_BACK, **pace: float
) -> AutoscalingConfig:
    """What serve/production.yaml says, for `fupan serve --replicas auto`. `look_back`: seconds over
    which the requests in flight are averaged; `pace`: as of `serve.autoscaling.Pace`."""
    policy = f"{Policy.__module__}:{Policy.__name__}"
    return AutoscalingConfig(
        min_replicas=fewest,
        max_replicas=most,
        target_ongoing_requests=IN_FLIGHT,
        look_back_period_s=look_back,
        # The policy has delays of its own.
        upscale_delay_s=0,
        downscale_delay_s=0,
        policy={"policy_function": policy, "policy_kwargs": pace},
    )


def longest_request(settings: GatewaySettings) -> float:
    """Seconds that a request can take."""
    serve = settings.serve
    return max(serve.timeout, *(task.timeout for task in serve.tasks.values()))


def read_settings(args: Mapping[str, Any]) -> GatewaySettings:
    """The settings that `args` hold or name, their paths absolute. `revision` says nothing about
    them: Ray Serve builds an application anew only where its args differ, so that raising it makes
    a change of the file at `config` count. Raises ValueError."""
    given = dict(args)
    given.pop("revision", None)
    path = given.pop("config", None)
    folder = None
    if path is not None:
        folder = Path(path).expanduser().absolute().parent
        if given:
            raise ValueError(f"args: either config or {' and '.join(SECTIONS)}, not both")
        data = load_yaml(Path(path).expanduser().read_text(encoding="utf-8"))
        if not isinstance(data, dict):
            raise ValueError(f"{path} holds no keys and values (a dictionary)")
        given = {name: data[name] for name in SECTIONS if data.get(name) is not None}
    if not given.get("providers") and not given.get("models"):
        raise ValueError(
            f"no providers and no models in {path or 'args'}: docs/gateway.md shows how to write "
            "one"
        )
    return absolute(GatewaySettings.model_validate(given), folder)
