"""What `/v1/embeddings` is held against: a deployment as Ray Serve's guide to batching writes it.

Annotations are evaluated here: FastAPI could not find their names in a class that was pickled.
"""

import asyncio
from typing import Any

from fastapi import FastAPI, Request, Response
from ray import serve as ray_serve
from ray.serve.schema import LoggingConfig

from scripts.benchmarks.embed_alone import encoder

BATCH = 32
_IN_FLIGHT = 256
"""Requests at once: more than there ever are."""


def plain_application(model: str, cpus: int) -> ray_serve.Application:
    """One replica that has the texts of all requests batched by 32, as `@serve.batch` does it.
    `cpus`: those that Ray keeps for it, which are the threads of its model; Ray's default is 1."""
    app = FastAPI()

    class Plain:
        def __init__(self) -> None:
            self._encode = encoder(model)

        @ray_serve.batch(max_batch_size=BATCH, batch_wait_timeout_s=0.01)  # type: ignore[untyped-decorator]
        async def _embed(self, texts: list[str]) -> list[Any]:
            return list(self._encode(texts))

        @app.post("/v1/embeddings")
        async def embeddings(self, request: Request) -> Response:
            import orjson

            given = (await request.json())["input"]
            texts = [given] if isinstance(given, str) else given
            vectors = await asyncio.gather(*(self._embed(text) for text in texts))
            data = [{"index": i, "embedding": each} for i, each in enumerate(vectors)]
            content = orjson.dumps({"data": data}, option=orjson.OPT_SERIALIZE_NUMPY)
            return Response(content, media_type="application/json")

    deployed = ray_serve.deployment(
        num_replicas=1,
        max_ongoing_requests=_IN_FLIGHT,
        ray_actor_options={"num_cpus": cpus},
        logging_config=LoggingConfig(enable_access_log=False),
    )(ray_serve.ingress(app)(Plain))
    return deployed.bind()
