"""What the gateway is held against: a FastAPI application that passes a request on with aiohttp and
does nothing else.

Annotations are evaluated here: FastAPI could not find their names in a class that was pickled.
"""

import aiohttp
from fastapi import FastAPI, Request, Response
from ray import serve as ray_serve
from ray.serve.schema import LoggingConfig

_CONNECTIONS = 256
"""To the upstream at most: more than are ever in flight."""


def bare_application(base_url: str) -> ray_serve.Application:
    """The pass-through as an application of Ray Serve, one replica."""
    app = FastAPI()

    class Bare:
        def __init__(self) -> None:
            self._session: aiohttp.ClientSession | None = None

        @app.post("/v1/chat/completions")
        async def complete(self, request: Request) -> Response:
            if self._session is None:
                connector = aiohttp.TCPConnector(limit=_CONNECTIONS)
                self._session = aiohttp.ClientSession(connector=connector)
            async with self._session.post(
                f"{base_url}/chat/completions",
                data=await request.body(),
                headers={"content-type": "application/json"},
            ) as answer:
                return Response(await answer.read(), answer.status, media_type="application/json")

    deployed = ray_serve.deployment(
        num_replicas=1,
        max_ongoing_requests=_CONNECTIONS,
        ray_actor_options={"num_cpus": 0},
        # As the gateway: a line for each request would count against the one that writes it.
        logging_config=LoggingConfig(enable_access_log=False),
    )(ray_serve.ingress(app)(Bare))
    return deployed.bind()
